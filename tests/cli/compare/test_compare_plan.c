/* Which runs a comparison consists of: strategies with their variants and options, how often a run with a
 * target is evaluated, what cannot be; and which of several results of one run counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/compare/compare.h"
#include "cli/session.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

static struct tr_string_list no_settings;

/* Orders for one number of workers. */
static struct cli_compare_orders orders_of(const char *strategies, int workers)
{
    static struct tr_int_list list;
    list = (struct tr_int_list){.count = 1, .item = {workers}};
    return (struct cli_compare_orders){
        .model = "tiny.yaml", .set = &no_settings, .strategies = strategies, .workers = &list, .threads = 8};
}

/* The cases after the single process, "strategy:workers+others:threads" each; "!" before those that are left
 * out. */
static void expect_cases(const struct cli_compare_orders *orders, const char *expected)
{
    struct cli_compare_plan plan;
    char text[2000] = "";
    const int64_t live = tr_alloc_live();
    if (cli_compare_plan(orders, &plan) != TR_OK) fail_msg("%s: %s", orders->strategies, tr_error_message());
    assert_true(plan.cases[0].alone && plan.cases[0].workers == 1 && plan.cases[0].ranks == 1);
    for (int i = 1; i < plan.count; i++) {
        const struct cli_compare_case *one = &plan.cases[i];
        assert_false(one->alone);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%d+%d:%d\n", one->left_out ? "!" : "",
                 one->strategy, one->workers, one->left_out ? 0 : one->ranks - one->workers, one->threads);
    }
    cli_compare_plan_release(&plan);
    assert_int_equal(tr_alloc_live(), live);
    assert_string_equal(text, expected);
}

static void strategies_become_cases(void **state)
{
    (void)state;
    struct cli_compare_orders orders = orders_of("allreduce", 2);
    expect_cases(&orders, "allreduce:2+0:4\n");
    orders = orders_of("local-sgd,every=3,allreduce,parameter-server,mode=async", 2);
    expect_cases(&orders, "local-sgd,every=3:2+0:4\nallreduce:2+0:4\nparameter-server,mode=async:2+1:4\n");
    orders = orders_of("pipeline,stages=2,allreduce", 3);
    orders.threads = 2; /* fewer than workers: one each */
    expect_cases(&orders, "!pipeline,stages=2:3+0:1\nallreduce:3+0:1\n");
    /* A process by itself has nobody to share with. */
    orders = orders_of("local-sgd,every=3", 1);
    struct cli_compare_plan plan;
    assert_int_equal(cli_compare_plan(&orders, &plan), TR_OK);
    assert_int_equal(plan.count, 2);
    assert_string_equal(plan.cases[1].left_out, "a single process has nobody to share with");
    cli_compare_plan_release(&plan);
    /* The single process is there once, however often it is ordered. */
    orders = orders_of("allreduce,allreduce", 1);
    expect_cases(&orders, "");
    orders = orders_of("allreduce,sdg", 2);
    assert_int_equal(cli_compare_plan(&orders, &plan), TR_ENOTFOUND);
    assert_int_equal(strncmp(tr_error_message(), "--strategies", strlen("--strategies")), 0);
    cli_compare_plan_release(&plan);
}

/* Every strategy is in "all", and names alone stand for their variants, with the number of workers in them.
 */
static void all_is_every_strategy(void **state)
{
    (void)state;
    struct cli_compare_orders orders = orders_of("all", 2);
    struct cli_compare_plan plan;
    static const char *const names[] = {"allreduce", "local-sgd", "parameter-server", "pipeline", "gossip"};
    bool seen[5] = {false}, kinds[3] = {false};
    assert_int_equal(cli_compare_plan(&orders, &plan), TR_OK);
    for (int i = 1; i < plan.count; i++) {
        const struct cli_compare_case *one = &plan.cases[i];
        for (int k = 0; k < 5; k++) seen[k] |= strncmp(one->strategy, names[k], strlen(names[k])) == 0;
        assert_null(strchr(one->strategy, '{'));
        if (one->left_out) continue;
        assert_true(one->ranks > 1);
        kinds[one->asynchronous ? 0 : one->own_hash ? 1 : 2] = true;
    }
    for (int k = 0; k < 4; k++)
        if (!seen[k]) fail_msg("no %s", names[k]);
    for (int k = 0; k < 3; k++) assert_true(kinds[k]);
    cli_compare_plan_release(&plan);
}

static int64_t evaluations_of(const char *setting)
{
    struct cli_compare_orders orders = orders_of("allreduce", 2);
    char *item[] = {(char *)(uintptr_t)setting};
    struct tr_string_list set = {.count = 1, .item = item};
    struct cli_compare_plan plan;
    orders.until = 0.5;
    if (setting) orders.set = &set;
    if (cli_compare_plan(&orders, &plan) != TR_OK) fail_msg("%s", tr_error_message());
    const int64_t every = plan.evaluate_every;
    cli_compare_plan_release(&plan);
    return every;
}

/* Of 64 examples; eight times in an epoch, or after each step of a shorter one. */
static void targets_are_looked_for_often_enough(void **state)
{
    (void)state;
    assert_int_equal(evaluations_of(NULL), 1);            /* 7 steps an epoch */
    assert_int_equal(evaluations_of("train.batch=9"), 1); /* 8 */
    assert_int_equal(evaluations_of("train.batch=4"), 2); /* 16 */
    assert_int_equal(evaluations_of("train.batch=3"), 2); /* 22 */
    assert_int_equal(evaluations_of("train.evaluate_every=5"), 5);
    struct cli_compare_orders orders = orders_of("allreduce", 2);
    struct cli_compare_plan plan;
    assert_int_equal(cli_compare_plan(&orders, &plan), TR_OK);
    assert_int_equal(plan.evaluate_every, 0);
    cli_compare_plan_release(&plan);
    write_text("values.csv", "1,2\n2,4\n3,6\n");
    write_text("values.yaml",
               "name: values\ndata: {train: {csv: {path: values.csv, label: value}}}\n"
               "layers: [{dense: 1}]\nloss: mean_squared_error\n"
               "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 3, steps: 2, microbatches: 3}\n");
    orders.model = "values.yaml";
    orders.until = 0.5;
    assert_int_equal(cli_compare_plan(&orders, &plan), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "--until names an accuracy, but \"values.yaml\" trains no classification");
    cli_compare_plan_release(&plan);
}

static void without_memory_there_is_no_plan(void **state)
{
    (void)state;
    const struct cli_compare_orders orders = orders_of("local-sgd,every=3", 2);
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_compare_plan plan;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = cli_compare_plan(&orders, &plan);
        done = refuse_end();
        if (done) assert_int_equal(status, TR_OK);
        if (!done && status != TR_ENOMEM) fail_msg("allocation %d: %d", (int)at, (int)status);
        cli_compare_plan_release(&plan);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* What was stopped has no figures: any that has some takes its place, and it takes the place of none. */
static void results_replace_each_other(void **state)
{
    (void)state;
    static const struct cli_compare_orders speed = {0}, target = {.until = 0.9};
    static const enum cli_compare_end ends[] = {CLI_COMPARE_NOT_RUN, CLI_COMPARE_STOPPED, CLI_COMPARE_DONE,
                                                CLI_COMPARE_OUT_OF_TIME, CLI_COMPARE_FAILED};
    static const bool counts[5][5] = {
        /* now: not run, stopped, done and faster, out of time and faster, failed */
        {true, true, true, true, true},     {false, false, true, true, true},
        {false, false, true, true, true},   {false, false, true, true, true},
        {false, false, false, false, true},
    };
    for (int b = 0; b < 5; b++)
        for (int n = 0; n < 5; n++) {
            struct cli_compare_result before = {.end = ends[b], .examples_per_second = 10},
                                      now = {.end = ends[n], .examples_per_second = 11};
            if (cli_compare_counts(&speed, &before, &now) != counts[b][n]) fail_msg("%d, then %d", b, n);
        }
    struct cli_compare_result one = {.end = CLI_COMPARE_DONE,
                                     .examples_per_second = 10,
                                     .target_seconds = NAN},
                              other = one;
    assert_false(cli_compare_counts(&speed, &one, &other)); /* the first of equals stays */
    assert_false(cli_compare_counts(&target, &one, &other));
    one.target_seconds = other.target_seconds = 5;
    assert_false(cli_compare_counts(&target, &one, &other));
    other.target_seconds = 4;
    assert_true(cli_compare_counts(&target, &one, &other));
    /* Without a speed there is no speed-up. */
    struct cli_compare_result pair[2] = {one, other};
    assert_true(cli_compare_speedup(pair, 1) == 1);
    pair[0].examples_per_second = 0;
    assert_true(isnan(cli_compare_speedup(pair, 1)));
    pair[0].examples_per_second = 5;
    pair[1].end = CLI_COMPARE_STOPPED;
    assert_true(isnan(cli_compare_speedup(pair, 1)));
    pair[1].end = CLI_COMPARE_OUT_OF_TIME;
    assert_true(cli_compare_speedup(pair, 1) == 2);
}

/* Times and targets are read whole; what is right is refused only for the file that cannot be written. */
static void times_and_targets_are_read(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"--budget=90", "none/x.csv"},
        {"--budget=90s", "none/x.csv"},
        {"--budget=5m", "none/x.csv"},
        {"--budget=1.5h", "none/x.csv"},
        {"--budget=0", "none/x.csv"},
        {"--budget=s", "--budget: \"s\""},
        {"--budget=-1", "--budget: \"-1\" is negative; write 90s, 5m or 1h"},
        {"--budget=5d", "--budget: \"5d\""},
        {"--budget=5ms", "--budget: \"5ms\""},
        {"--budget=m5", "--budget: \"m5\""},
        {"--budget=00000000000000000000000000000001s", "is too long"},
        {"--until=accuracy=1", "none/x.csv"},
        {"--until=accuracy=0.001", "none/x.csv"},
        {"--until=accuracy=0", "--until: \"accuracy=0\" is not between 0 and 1; write accuracy=0.98"},
        {"--until=accuracy=1.01", "is not between 0 and 1"},
        {"--until=accuracy=x", "--until: \"accuracy=x\" is not a number; write accuracy=0.98"},
        {"--until=0.9", "--until: \"0.9\" is no accuracy; write accuracy=0.98"},
        {"--until=loss=0.9", "\" is no accuracy"},
        {"--workers=1,1025", "--workers: 1025 is out of range; allowed: 1 .. 1024"},
        {"--rounds=0", "--rounds: 0 is out of range; allowed: 1 .. 1000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        int code = run(&session, "compare", "tiny.yaml", cases[i][0], "--csv", "none/x.csv", NULL);
        expect_error(2, cases[i][1], &session, code);
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_become_cases),
        cmocka_unit_test(all_is_every_strategy),
        cmocka_unit_test(targets_are_looked_for_often_enough),
        cmocka_unit_test(without_memory_there_is_no_plan),
        cmocka_unit_test(results_replace_each_other),
        cmocka_unit_test(times_and_targets_are_read),
    };
    return cmocka_run_group_tests_name("cli.compare_plan", tests, place_make, place_remove);
}
