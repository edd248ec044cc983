/* Messages reach the sink whole and in order, or nobody. */
#include "base/text/log.h"

#include "base/threads/clock.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static char last[2048];
static int count;
static enum tr_log_level last_level;

static void keep(void *user, enum tr_log_level level, const char *message)
{
    assert_ptr_equal(user, &count);
    strncpy(last, message, sizeof last - 1);
    last_level = level;
    count++;
}

static void messages_reach_the_sink(void **state)
{
    (void)state;
    tr_log_line(TR_LOG_WARNING, "nobody listens");
    tr_log_set_sink(keep, &count, TR_LOG_INFO);
    tr_fail(TR_EINVAL, "kept");
    tr_log_line(TR_LOG_WARNING, "step %d: %s", 7, "late");
    assert_int_equal(count, 1);
    assert_string_equal(last, "step 7: late");
    assert_string_equal(tr_log_level_name(last_level), "warning");
    tr_log_line(TR_LOG_DEBUG, "too small a matter");
    assert_int_equal(count, 1);
    tr_log_line(TR_LOG_INFO, "%2000d", 1);
    assert_int_equal(strlen(last), 1023);
    assert_string_equal(tr_error_message(), "kept");
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    tr_log_line(TR_LOG_WARNING, "nobody listens");
    assert_int_equal(count, 2);
}

static void times_are_written_in_utc(void **state)
{
    (void)state;
    char text[TR_CLOCK_TEXT];
    assert_string_equal(tr_clock_text(0, text), "1970-01-01T00:00:00Z");
    assert_string_equal(tr_clock_text(951782400.75, text), "2000-02-29T00:00:00Z");
    double begin = tr_clock_seconds();
    assert_true(tr_clock_seconds() >= begin);
    assert_true(tr_clock_wall() > 1.7e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_reach_the_sink),
        cmocka_unit_test(times_are_written_in_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
