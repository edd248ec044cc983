/* Sums over the processes of a run, and the lines made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/train/statistics.h"

#include "base/alloc.h"

#define NEAR(a, b) assert_true((a) - (b) < 1e-9 && (b) - (a) < 1e-9)

static const struct tr_train_rank workers[] = {
    {.bytes_sent = 1000, .bytes_shared = 50, .wait_seconds = 4, .compute_seconds = 5},
    {.bytes_sent = 3000, .bytes_shared = 0, .wait_seconds = 0.5, .compute_seconds = 9},
    {.bytes_sent = 2000, .bytes_shared = 70, .wait_seconds = 5, .compute_seconds = 4},
    {.bytes_sent = 4000, .bytes_shared = 0, .wait_seconds = 0.1, .compute_seconds = 0}, /* a server */
};

static char *text_of(const struct tr_train_statistics *statistics, double seconds)
{
    struct tr_text text = TR_TEXT_INIT;
    char *out;
    cli_statistics_text(statistics, seconds, &text);
    assert_int_equal(tr_text_finish(&text, &out), TR_OK);
    return out;
}

static void test_sums(void **state)
{
    (void)state;
    struct tr_train_statistics statistics = {.ranks = 4, .rank = workers, .steps = 10};
    struct cli_statistics sum = cli_statistics_of(&statistics, 10);
    NEAR(sum.sent, 1000);
    NEAR(sum.shared, 12);
    NEAR(sum.computing, 18.0 / 40);
    NEAR(sum.waiting, 9.6 / 40);
    assert_int_equal(sum.slowest, 1);
    NEAR(sum.slowest_seconds, 9);
    NEAR(sum.others_seconds, 4.5);
    NEAR(sum.others_waited, 4.5);
    char *text = text_of(&statistics, 10);
    assert_non_null(strstr(text, "processes   4, computing 45 % and waiting 24 %"));
    assert_non_null(strstr(text, "waited for  rank 1: it computed for 9"));
    assert_null(strstr(text, "staleness"));
    tr_free(text);
}

/* What was sent before the first step, and times that no clock has seen. */
static void test_no_steps(void **state)
{
    (void)state;
    struct tr_train_statistics statistics = {.ranks = 4, .rank = workers};
    struct cli_statistics sum = cli_statistics_of(&statistics, 0);
    NEAR(sum.sent, 10000);
    NEAR(sum.shared, 120);
    NEAR(sum.computing, 18);
    NEAR(sum.waiting, 9.6);
    statistics.steps = 1;
    NEAR(cli_statistics_of(&statistics, 0.5).sent, 10000);
    NEAR(cli_statistics_of(&statistics, 0.5).computing, 9);
}

static void test_nobody_stands_out(void **state)
{
    (void)state;
    static const struct tr_train_rank even[] = {{.wait_seconds = 0.2, .compute_seconds = 5},
                                                {.wait_seconds = 0.1, .compute_seconds = 5.1}};
    struct tr_train_statistics statistics = {.ranks = 2, .rank = even, .steps = 0};
    assert_int_equal(cli_statistics_of(&statistics, 0).slowest, -1);
    char *text = text_of(&statistics, 6);
    assert_null(strstr(text, "waited for"));
    tr_free(text);
    statistics.ranks = 1;
    text = text_of(&statistics, 6);
    assert_string_equal(text, "");
    tr_free(text);
}

static void test_staleness(void **state)
{
    (void)state;
    static const int64_t bins[] = {10, 20, 0, 10, 0};
    static const int64_t full[] = {10, 30};
    struct tr_train_statistics statistics = {
        .ranks = 2, .rank = workers, .steps = 40, .asynchronous = true, .staleness = bins, .dropped = 3};
    statistics.staleness_bins = 5;
    struct cli_statistics sum = cli_statistics_of(&statistics, 10);
    NEAR(sum.mean_staleness, 1.25);
    assert_int_equal(sum.most_staleness, 3);
    assert_false(sum.more_staleness);
    char *text = text_of(&statistics, 10);
    assert_non_null(strstr(text, "staleness   mean 1.25, at most 3 (0: 25 %, 1: 50 %, 3: 25 %); 3 gradients "
                                 "came too late\n"));
    tr_free(text);
    static const int64_t wide[] = {10, 20, 0, 10, 0, 0, 30, 20, 10};
    statistics.staleness = wide;
    statistics.staleness_bins = 9;
    text = text_of(&statistics, 10);
    assert_non_null(strstr(text, "at most 8 or more (0: 10 %, 1: 20 %, 3: 10 %, 6 or more: 60 %)"));
    tr_free(text);
    /* One gradient, and none, which has no shares. */
    static const int64_t one[] = {0, 1, 0}, none[] = {0, 0, 0};
    statistics.staleness = one;
    statistics.staleness_bins = 3;
    text = text_of(&statistics, 10);
    assert_non_null(strstr(text, "staleness   mean 1.00, at most 1 (1: 100 %);"));
    tr_free(text);
    statistics.dropped = 0;
    statistics.staleness = none;
    text = text_of(&statistics, 10);
    assert_non_null(strstr(text, "staleness   mean 0.00, at most 0"));
    assert_null(strstr(text, " ("));
    assert_null(strstr(text, "too late"));
    tr_free(text);
    statistics.staleness = full;
    statistics.staleness_bins = 2;
    assert_true(cli_statistics_of(&statistics, 10).more_staleness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_no_steps),
        cmocka_unit_test(test_nobody_stands_out),
        cmocka_unit_test(test_staleness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
