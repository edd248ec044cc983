/* Times: those of the system's clocks, or of a source in their place; and how a moment is written. */
#include "base/threads/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

static double system_seconds(clockid_t clock)
{
    struct timespec now;
    assert_int_equal(clock_gettime(clock, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Within seconds, too: at moments in different parts of one. */
static void test_clocks_are_those_of_the_system(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const double before = system_seconds(CLOCK_MONOTONIC), wall = system_seconds(CLOCK_REALTIME);
        const double seconds = tr_clock_seconds(), read = tr_clock_wall();
        assert_true(seconds >= before - 1e-6 && seconds <= system_seconds(CLOCK_MONOTONIC) + 1e-6);
        assert_true(read >= wall - 1e-3 && read <= system_seconds(CLOCK_REALTIME) + 1e-3);
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
}

static double next(void *user)
{
    return *(double *)user += 0.5;
}

static void test_a_source_takes_the_place_of_a_clock(void **state)
{
    (void)state;
    double time = 7;
    tr_clock_use(next, &time);
    assert_true(tr_clock_seconds() == 7.5 && tr_clock_seconds() == 8);
    const double wall = system_seconds(CLOCK_REALTIME), read = tr_clock_wall();
    assert_true(read >= wall - 1e-3 && read <= system_seconds(CLOCK_REALTIME) + 1e-3);
    tr_clock_use(NULL, NULL);
    const double before = system_seconds(CLOCK_MONOTONIC);
    assert_true(tr_clock_seconds() >= before - 1e-6);
    assert_true(time == 8);
}

static void test_moments_are_written_in_utc(void **state)
{
    static const struct {
        double wall;
        const char *text;
    } moments[] = {
        {0, "1970-01-01T00:00:00Z"},
        {0.999, "1970-01-01T00:00:00Z"},
        {-0.5, "1969-12-31T23:59:59Z"},
        {1709208001, "2024-02-29T12:00:01Z"},
        {1769903999.75, "2026-01-31T23:59:59Z"},
        {1e18, "1000000000000000000"}, /* in no year that the calendar has */
    };
    (void)state;
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        char text[TR_CLOCK_TEXT];
        assert_ptr_equal(tr_clock_text(moments[i].wall, text), text);
        assert_string_equal(text, moments[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks_are_those_of_the_system),
        cmocka_unit_test(test_a_source_takes_the_place_of_a_clock),
        cmocka_unit_test(test_moments_are_written_in_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
