/* What strategies do for all classes: artificial delays, in a time of the test's own; progress threads where
 * messages are large; and what a strategy is, by its class. */
#include "strategy/class.h"

#include "base/numbers/rng.h"
#include "base/threads/clock.h"
#include "comm/class.h"
#include "support/comm_thread/thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

/* ---- delays ---- */

/* Time passes only in naps. */
static struct {
    double now, longest;
    int naps;
    int stop_after; /* that nap */
    atomic_int stop;
} time_of;

static double tell_time(void *user)
{
    (void)user;
    return time_of.now;
}

/* In the place of the system's. */
int nanosleep(const struct timespec *length, struct timespec *left)
{
    double seconds = (double)length->tv_sec + 1e-9 * (double)length->tv_nsec;
    (void)left;
    time_of.now += seconds + 1e-9; /* it also takes time to call */
    if (seconds > time_of.longest) time_of.longest = seconds;
    if (++time_of.naps == time_of.stop_after) time_of.stop = 1;
    return 0;
}

/* Seconds that a rank is delayed after so many of work. */
static double delay_of(const tr_strategy *strategy, int64_t step, double seconds, int stop_after)
{
    time_of.now = 100;
    time_of.longest = 0;
    time_of.naps = 0;
    time_of.stop_after = stop_after;
    tr_clock_use(tell_time, NULL);
    tr_strategy_delay(strategy, step, seconds);
    tr_clock_use(NULL, NULL);
    return time_of.now - 100;
}

static void expect_about(double got, double expected)
{
    if (fabs(got - expected) > 1e-6) fail_msg("%.9f s instead of %.9f s", got, expected);
}

static void slow_ranks_take_their_factor(void **state)
{
    (void)state;
    static const struct {
        double slow, seconds, delay;
        int naps;
    } cases[] = {{0, 3, 0, 0},         {1, 3, 0, 0},       {0.5, 3, 0, 0},  {3, 0.125, 0.25, 13},
                 {1.5, 0.02, 0.01, 1}, {2, 0.03, 0.03, 2}, {11, 0.1, 1, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_strategy strategy = {.settings = {.slow = cases[i].slow}};
        expect_about(delay_of(&strategy, 7, cases[i].seconds, 0), cases[i].delay);
        assert_in_range(time_of.naps, cases[i].naps, cases[i].naps + (cases[i].naps > 0));
        assert_true(time_of.longest < 0.0201);
    }
}

/* Half of the work times -log of a uniform number, of seed, rank and step. */
static double drawn(uint64_t seed, int rank, int64_t step)
{
    uint32_t words[4];
    tr_rng_philox(tr_rng_key_make(seed, TR_RNG_DELAY), (uint32_t)rank, (uint32_t)step, 0, 0, words);
    return -0.5 * log((words[0] + 0.5) / 4294967296.0);
}

static void random_delays_follow_from_the_seed(void **state)
{
    (void)state;
    double total = 0;
    enum { STEPS = 400 };
    for (int rank = 0; rank < 3; rank++)
        for (int64_t step = 0; step < STEPS; step++) {
            tr_strategy strategy = {.rank = rank, .settings = {.delay_seed = 5, .slow = rank == 2 ? 3 : 1}};
            double delay = delay_of(&strategy, step, 0.1, 0) / 0.1;
            expect_about(delay, drawn(5, rank, step) + (rank == 2 ? 2 : 0));
            total += delay;
        }
    /* Half a step in the mean. */
    total = (total - 2 * STEPS) / (3 * STEPS);
    assert_true(total > 0.45 && total < 0.55);
}

static void a_stop_ends_delays(void **state)
{
    (void)state;
    tr_strategy strategy = {.settings = {.slow = 101, .stop = &time_of.stop}};
    time_of.stop = 0;
    expect_about(delay_of(&strategy, 0, 0.1, 0), 10);
    expect_about(delay_of(&strategy, 0, 0.1, 3), 0.06);
    expect_about(delay_of(&strategy, 0, 0.1, 0), 0); /* it is set */
    assert_int_equal(time_of.naps, 0);
}

/* ---- progress ---- */

/* Where all are on one host and what they exchange is in a window, only small messages are sent. */
static void large_messages_make_progress_by_themselves(void **state)
{
    (void)state;
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};
    static const struct {
        bool hosts, window, progress;
    } cases[] = {{false, false, true}, {false, true, false}, {true, true, true}, {true, false, true}};
    tr_strategy alone = {.size = 1};
    const tr_window *window = (const tr_window *)(const void *)&settings; /* is there, which is all */
    must(tr_strategy_use_progress_thread(&alone, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int host[] = {0, cases[i].hosts};
        tr_comm *comm[2];
        must(tr_comm_thread_create(2, host, &settings, comm));
        tr_strategy strategy = {.size = 2, .comm = comm[0]};
        must(tr_strategy_use_progress_thread(&strategy, cases[i].window ? window : NULL));
        assert_int_equal(comm[0]->progress != NULL, cases[i].progress);
        for (int r = 0; r < 2; r++) {
            tr_comm_abort(comm[r], "enough");
            tr_comm_destroy(&comm[r]);
        }
    }
}

/* ---- traffic ---- */

static struct tr_comm_statistics *moved[2];

/* A step in which this and that goes through the communicator of all ranks, and of a part of them. */
static tr_status work(tr_strategy *strategy, const atomic_int *stop, int32_t request,
                      struct tr_step_figures *figures)
{
    (void)strategy, (void)stop, (void)request, (void)figures;
    for (int i = 0; i < 2 && moved[i]; i++) {
        moved[i]->bytes_sent += 1 + 10 * i;
        moved[i]->bytes_received += 2 + 10 * i;
        moved[i]->bytes_shared += 3 + 10 * i;
        moved[i]->wait_seconds += 4 + 10 * i;
    }
    return TR_OK;
}

/* Of whole groups and parts of them; what went before does not count. */
static void the_traffic_of_a_step_counts(void **state)
{
    (void)state;
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};
    const struct tr_strategy_asynchronous asynchronous = {.work = work};
    const struct tr_strategy_class class = {.asynchronous = &asynchronous};
    tr_comm *comm[2];
    for (int i = 0; i < 2; i++) {
        must(tr_comm_thread_create(1, NULL, &settings, &comm[i]));
        comm[i]->statistics.bytes_sent = comm[i]->statistics.wait_seconds = 1000;
    }
    for (int parts = 0; parts < 3; parts++) {
        tr_strategy strategy = {.class = &class, .traits = {.asynchronous = true}, .size = 1};
        struct tr_step_figures figures;
        if (parts > 0) strategy.comm = comm[0];
        if (parts > 1) strategy.part = comm[1];
        for (int i = 0; i < 2; i++) moved[i] = i < parts ? &comm[i]->statistics : NULL;
        for (int step = 1; step <= 2; step++) {
            const int each = parts * step, more = parts > 1 ? 10 * step : 0;
            must(tr_strategy_step(&strategy, step, 0, &figures));
            assert_int_equal(strategy.done.bytes_sent, each + more);
            assert_int_equal(strategy.done.bytes_received, 2 * each + more);
            assert_int_equal(strategy.done.bytes_shared, 3 * each + more);
            assert_true(strategy.done.wait_seconds == 4 * each + more);
            assert_int_equal(figures.steps, 1);
            assert_true(isnan(figures.norm));
        }
    }
    for (int i = 0; i < 2; i++) tr_comm_destroy(&comm[i]);
}

/* ---- what a strategy is ---- */

static tr_status evaluate(tr_strategy *strategy, const struct tr_shared_evaluation *evaluation)
{
    (void)strategy, (void)evaluation;
    return TR_OK;
}

static bool over;

static bool is_over(const tr_strategy *strategy)
{
    (void)strategy;
    return over;
}

static void classes_say_what_they_do(void **state)
{
    (void)state;
    const struct tr_strategy_asynchronous none = {.work = NULL},
                                          both = {.evaluate = evaluate, .is_over = is_over};
    struct tr_strategy_class class = {.name = "own"};
    tr_strategy strategy = {.class = &class};
    struct tr_shared_evaluation evaluation = {.count = 1};
    assert_false(tr_strategy_shares_evaluations(&strategy));
    assert_false(tr_strategy_is_over(&strategy));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tr_strategy_evaluate(&strategy, &evaluation), TR_EUNSUPPORTED);
        assert_string_equal(tr_error_message(),
                            "evaluations are not shared under the strategy own; evaluate by the root");
        class.asynchronous = &none;
        assert_false(tr_strategy_shares_evaluations(&strategy));
        assert_false(tr_strategy_is_over(&strategy));
    }
    class.asynchronous = &both;
    assert_true(tr_strategy_shares_evaluations(&strategy));
    must(tr_strategy_evaluate(&strategy, &evaluation));
    assert_false(tr_strategy_is_over(&strategy));
    over = true;
    assert_true(tr_strategy_is_over(&strategy));
    /* The root of an asynchronous run has a log. */
    assert_null(tr_strategy_updates(&strategy));
    strategy.traits.asynchronous = true;
    assert_ptr_equal(tr_strategy_updates(&strategy), &strategy.log);
    strategy.rank = 1;
    assert_null(tr_strategy_updates(&strategy));
    strategy.ahead = 7;
    assert_int_equal(tr_strategy_take_ahead(&strategy), 7);
    assert_int_equal(tr_strategy_take_ahead(&strategy), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_ranks_take_their_factor),
        cmocka_unit_test(random_delays_follow_from_the_seed),
        cmocka_unit_test(a_stop_ends_delays),
        cmocka_unit_test(large_messages_make_progress_by_themselves),
        cmocka_unit_test(the_traffic_of_a_step_counts),
        cmocka_unit_test(classes_say_what_they_do),
    };
    return cmocka_run_group_tests_name("strategy.services", tests, NULL, NULL);
}
