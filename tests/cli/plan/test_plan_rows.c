/* Rows of a plan: which there are, the parts that are measured for them, those that turn out to be
 * impossible, and what is said of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/plan/plan.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/session.h"
#include "job/job.h"

#include <math.h>

static struct tr_string_list no_set;

/* Each strategy on each number of workers; the first row is one process. Of a batch that grows, as much as
 * there are workers.
 */
static void test_rows_are_combinations(void **state)
{
    (void)state;
    static const struct {
        const char *strategies, *row[4];
        int workers[2], counts;
        bool grow;
        int on[4], rows;
        int64_t batch[4];
    } cases[] = {
        {"allreduce", {"allreduce"}, {1}, 1, false, {1}, 1, {10}},
        {"allreduce", {"allreduce", "allreduce"}, {2}, 1, false, {1, 2}, 2, {10, 10}},
        {"allreduce", {"allreduce", "allreduce", "allreduce"}, {1, 2}, 2, false, {1, 2, 2}, 2, {10, 10}},
        {"allreduce", {"allreduce", "allreduce"}, {2}, 1, true, {1, 2}, 2, {10, 20}},
        /* Workers that do not wait for each other compute whole batches, which do not grow. */
        {"parameter-server,mode=async",
         {"allreduce", "parameter-server,mode=async"},
         {2},
         1,
         true,
         {1, 2},
         2,
         {10, 10}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_plan plan = {0};
        struct cli_plan_orders orders = {.model = "tiny.yaml",
                                         .set = &no_set,
                                         .strategies = cases[i].strategies,
                                         .worker_counts = cases[i].counts,
                                         .grow = cases[i].grow,
                                         .processors = 2};
        memcpy(orders.workers, cases[i].workers, sizeof cases[i].workers);
        if (cli_plan_rows(&orders, &plan) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(plan.rows, cases[i].rows);
        for (int k = 0; k < plan.rows; k++) {
            if (strncmp(plan.row[k].strategy, cases[i].row[k], strlen(cases[i].row[k])) != 0)
                fail_msg("case %zu, row %d: %s", i, k, plan.row[k].strategy);
            assert_int_equal(plan.row[k].workers, cases[i].on[k]);
            assert_int_equal(plan.row[k].batch, cases[i].batch[k]);
            assert_true(isnan(plan.row[k].measured) && !plan.row[k].left_out);
            /* Microbatches grow as the batch does. */
            assert_int_equal(plan.row[k].microbatches * 10, plan.row[0].microbatches * cases[i].batch[k]);
        }
        tr_plan_release(&plan);
    }
}

static void test_other_strategies_are_refused(void **state)
{
    (void)state;
    struct tr_plan plan = {0};
    const struct cli_plan_orders orders = {.model = "tiny.yaml",
                                           .set = &no_set,
                                           .strategies = "nonsense",
                                           .workers = {2},
                                           .worker_counts = 1,
                                           .processors = 2};
    assert_int_equal(cli_plan_rows(&orders, &plan), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "nonsense"));
    tr_plan_release(&plan);
}

/* A row that is refused when it is played has the reason, and the others have figures; what is no refusal
 * ends the plan.
 */
static void test_rows_that_are_refused_are_left_out(void **state)
{
    (void)state;
    struct tr_job *job;
    struct cli_screen screen;
    FILE *nowhere = fopen("/dev/null", "w");
    const struct tr_job_settings settings = {0};
    struct cli_plan_orders orders = {
        .model = "tiny.yaml", .set = &no_set, .processors = 1, .calls = 1, .device = {.name = "cpu"}};
    assert_non_null(nowhere);
    assert_int_equal(tr_job_open("tiny.yaml", &settings, &job), TR_OK);
    assert_int_equal(tr_job_open_set(job, TR_SET_TRAIN), TR_OK);
    cli_screen_begin(&screen, nowhere);
    for (int fails = 0; fails < 2; fails++) {
        char strategy[] = "allreduce";
        struct tr_plan_row row[] = {
            {.strategy = strategy, .workers = 1, .ranks = 1, .batch = 10, .microbatches = 5},
            {.strategy = strategy, .workers = 4, .ranks = 4, .batch = 2, .microbatches = 2},
            {.strategy = strategy, .workers = 2, .ranks = 2, .batch = 10, .microbatches = 5}};
        struct tr_plan plan = {.cluster = tr_cluster_ordinary, .row = row, .rows = 3};
        plan.cluster.hosts = 4;
        orders.traces = fails ? "tiny.yaml/none" : NULL; /* which is no directory */
        const tr_status status = cli_plan_figures(&orders, job, &screen, &plan);
        if (fails) {
            assert_int_equal(status, TR_EIO);
            assert_null(row[0].left_out);
            continue;
        }
        if (status != TR_OK) fail_msg("%s", tr_error_message());
        assert_non_null(row[1].left_out);
        assert_non_null(strstr(row[1].left_out, "2 microbatches"));
        assert_true(row[1].figures.examples_per_second == 0);
        for (int i = 0; i < 3; i += 2) {
            assert_null(row[i].left_out);
            assert_true(row[i].figures.examples_per_second > 0);
        }
        assert_true(plan.again == 0); /* which takes a time to be measured */
        tr_free(row[1].left_out);
    }
    /* With a time to measure, the first row is measured again at the end, if it has figures. */
    for (int left_out = 0; left_out < 2; left_out++) {
        char strategy[] = "allreduce", reason[] = "none";
        struct tr_plan_row row[] = {
            {.strategy = strategy, .workers = 1, .ranks = 1, .batch = 10, .microbatches = 5},
            {.strategy = strategy, .workers = 2, .ranks = 2, .batch = 10, .microbatches = 5}};
        struct tr_plan plan = {.cluster = tr_cluster_ordinary, .row = row, .rows = 2};
        plan.cluster.hosts = 2;
        plan.cluster.memory = 0;
        orders.traces = NULL;
        orders.seconds = 0.01;
        if (left_out) row[0].left_out = reason;
        if (cli_plan_figures(&orders, job, &screen, &plan) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(plan.again > 0, !left_out);
        assert_int_equal(row[0].figures.examples_per_second > 0, !left_out);
        assert_true(row[1].figures.examples_per_second > 0 && !row[1].left_out);
        assert_true(plan.cluster.memory > 0); /* as measured */
    }
    cli_screen_end(&screen);
    fclose(nowhere);
    tr_job_destroy(&job);
}

/* What cannot be is said: one process that is much faster or slower at the end than in the beginning. */
static void test_a_busy_machine_is_told(void **state)
{
    (void)state;
    static const struct {
        double first, again;
        bool told;
    } cases[] = {{100, 100, false}, {100, 0, false}, {100, 85, false}, {100, 70, true}, {70, 100, true}};
    char strategy[] = "allreduce";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_plan_row row[2] = {{.strategy = strategy, .workers = 1, .ranks = 1},
                                     {.strategy = strategy, .workers = 2, .ranks = 2}};
        row[0].figures.examples_per_second = cases[i].first;
        row[1].figures.examples_per_second = 1.5 * cases[i].first;
        const struct tr_plan plan = {.row = row, .rows = 2, .again = cases[i].again};
        char *verdict = cli_plan_verdict(&plan);
        assert_non_null(verdict);
        assert_int_equal(strstr(verdict, "by those of the end") != NULL, cases[i].told);
        assert_non_null(strstr(verdict, "Fastest by prediction: allreduce on 2 workers"));
        assert_non_null(strstr(verdict, ", 1.50 times one process"));
        assert_null(strstr(verdict, "?"));
        tr_free(verdict);
    }
}

/* The fastest is the one with the largest figure, also where that cannot be; but it is marked there, too. */
static void test_a_fastest_that_cannot_be_is_marked(void **state)
{
    (void)state;
    char strategy[] = "allreduce";
    struct tr_plan_row row[2] = {{.strategy = strategy, .workers = 1, .ranks = 1},
                                 {.strategy = strategy, .workers = 2, .ranks = 2}};
    row[0].figures.examples_per_second = 100;
    row[1].figures.examples_per_second = 290;
    const struct tr_plan plan = {.row = row, .rows = 2, .again = 100};
    char *verdict = cli_plan_verdict(&plan);
    assert_non_null(verdict);
    assert_non_null(strstr(verdict, "cannot be (1 of the rows)"));
    assert_non_null(strstr(verdict, ", 2.90? times one process"));
    tr_free(verdict);
    char *text = cli_plan_row(&plan, 1, 0);
    assert_non_null(text);
    assert_non_null(strstr(text, " 2.90? "));
    tr_free(text);
    row[1].workers = 1; /* and a server */
    verdict = cli_plan_verdict(&plan);
    assert_non_null(verdict);
    assert_non_null(strstr(verdict, "Fastest by prediction: allreduce on 1 worker, 290 examples/s"));
    tr_free(verdict);
}

static void test_there_may_be_nothing_to_recommend(void **state)
{
    (void)state;
    char strategy[] = "allreduce", reason[] = "too large";
    struct tr_plan_row row = {.strategy = strategy, .workers = 1, .ranks = 1, .left_out = reason};
    const struct tr_plan plan = {.row = &row, .rows = 1};
    char *verdict = cli_plan_verdict(&plan);
    assert_non_null(verdict);
    assert_string_equal(verdict, "Nothing can be recommended: every combination was left out.");
    tr_free(verdict);
}

/* Steps are told with three digits, however fast they are. */
static void test_times_of_steps(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {4.7e-5, "0.047 ms"}, {1.25e-3, "1.25 ms"}, {0.0999, "99.9 ms"}, {0.25, "250 ms"}, {4.24, "4.2 s"}};
    char strategy[] = "allreduce";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_plan_row row = {.strategy = strategy, .workers = 1, .ranks = 1, .batch = 10};
        row.figures.seconds = cases[i].seconds;
        row.figures.examples_per_second = 10 / cases[i].seconds;
        const struct tr_plan plan = {.row = &row, .rows = 1};
        char cell[64], *text = cli_plan_row(&plan, 0, 0);
        assert_non_null(text);
        snprintf(cell, sizeof cell, " %s ", cases[i].text);
        if (!strstr(text, cell)) fail_msg("no \"%s\" in \"%s\"", cell, text);
        tr_free(text);
    }
}

/* What ranks send and what they read in shared memory is moved; a run that was made is compared with. */
static void test_rows_tell_what_is_moved(void **state)
{
    (void)state;
    char strategy[] = "allreduce", failure[] = "a rank was lost";
    struct tr_plan_row row[2] = {
        {.strategy = strategy, .workers = 1, .ranks = 1, .batch = 10},
        {.strategy = strategy, .workers = 2, .ranks = 2, .batch = 10, .measured = 80, .failure = failure}};
    row[0].figures.examples_per_second = 50;
    row[1].figures = (struct tr_rehearsed){.seconds = 0.1,
                                           .examples_per_second = 100,
                                           .sum = {.bytes_sent = 3 << 10, .bytes_shared = 1 << 10},
                                           .most = {.memory = 5 << 10},
                                           .waiting = 0.25,
                                           .bottleneck = TR_BOTTLENECK_PROCESSING};
    const struct tr_plan plan = {.row = row, .rows = 2};
    static const char *const parts[] = {
        " 2.00 ", " 5.0 KiB ", " 4.0 KiB ", " 25 %",
        "  processors for messages and sums; measured 80 examples/s, +25 %; the run failed: a rank was lost"};
    char *text = cli_plan_row(&plan, 1, 0);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(text, parts[i])) fail_msg("no \"%s\" in \"%s\"", parts[i], text);
    tr_free(text);
}

/* What is measured for a row: the whole batch, what a rank computes of it, and a pipeline's portion, by as
 * many ranks and threads as share a host.
 */
static void test_parts_that_are_measured(void **state)
{
    (void)state;
    static const struct {
        int workers, threads;
        int64_t batch, microbatches;
        bool grow;
        int on_host, each; /* of the usage */
        int64_t rows[3], of[3];
    } cases[] = {
        {1, 0, 32, 8, false, 1, 6, {32, 4}, {8, 1}},
        {2, 0, 32, 8, false, 2, 3, {32, 16, 4}, {8, 4, 1}},
        {3, 0, 32, 8, false, 2, 3, {32, 8, 4}, {8, 2, 1}},
        {16, 0, 32, 8, false, 2, 3, {32, 4}, {8, 1}}, /* more than there are microbatches */
        {2, 5, 32, 8, false, 2, 5, {32, 16, 4}, {8, 4, 1}},
        {4, 0, 32, 8, true, 2, 3, {32, 8, 4}, {8, 2, 1}},
        {8, 0, 64, 16, true, 2, 3, {8, 4}, {2, 1}}, /* no rank computes so large a batch at once */
        {8, 0, 64, 16, false, 2, 3, {64, 8, 4}, {16, 2, 1}},
        {1, 0, 2, 4, false, 1, 6, {2, 1}, {4, 1}}, /* an example is the least */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_machine machine = {0};
        const struct cli_plan_orders orders = {
            .processors = 6, .threads = cases[i].threads, .grow = cases[i].grow};
        const struct tr_plan plan = {.cluster = {.hosts = 8, .per_host = 2}};
        const struct tr_plan_row row = {
            .workers = cases[i].workers, .batch = cases[i].batch, .microbatches = cases[i].microbatches};
        int parts = 0;
        assert_int_equal(cli_plan_expect(&orders, &plan, &row, &machine), TR_OK);
        assert_int_equal(machine.usages, 1);
        assert_int_equal(machine.usage[0].copies, cases[i].on_host);
        assert_int_equal(machine.usage[0].threads, cases[i].each);
        for (; parts < 3 && cases[i].rows[parts] > 0; parts++) {
            assert_true(parts < machine.usage[0].parts);
            assert_int_equal(machine.usage[0].part[parts].rows, cases[i].rows[parts]);
            assert_int_equal(machine.usage[0].part[parts].microbatches, cases[i].of[parts]);
        }
        assert_int_equal(machine.usage[0].parts, parts);
        tr_machine_release(&machine);
    }
}

/* Rows of equal usage are measured together, others each by their own. */
static void test_usages_that_are_measured(void **state)
{
    (void)state;
    static const int workers[] = {1, 2, 4, 1}, usage[] = {0, 1, 1, 0};
    struct tr_machine machine = {0};
    const struct cli_plan_orders orders = {.processors = 1};
    const struct tr_plan plan = {.cluster = {.hosts = 8, .per_host = 2}};
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        const struct tr_plan_row row = {.workers = workers[i], .batch = 32, .microbatches = 8};
        assert_int_equal(cli_plan_expect(&orders, &plan, &row, &machine), TR_OK);
        assert_int_equal(machine.usages, i == 0 ? 1 : 2);
        assert_int_equal(machine.usage[usage[i]].threads, 1); /* at least one */
        assert_int_equal(machine.usage[usage[i]].copies, workers[i] < 2 ? 1 : 2);
    }
    assert_int_equal(machine.usage[0].parts, 2);
    assert_int_equal(machine.usage[1].parts, 4); /* 32, 16, 8 and 4 rows */
    tr_machine_release(&machine);
}

/* Two processes of this host find out how fast they talk. */
static void test_this_host_is_measured(void **state)
{
    (void)state;
    struct tr_path found = {0};
    if (cli_plan_probe(&found) != TR_OK) fail_msg("%s", tr_error_message());
    assert_true(found.rate > 0 && found.copying > 0);
    assert_true(found.latency > 0 && found.overhead >= 0 && found.waking >= 0);
}

/* However slow the network is, it is measured. */
static void test_slow_networks_are_measured(void **state)
{
    (void)state;
    int before = cli_plan_rounds(1e-9);
    assert_int_equal(cli_plan_rounds(0), before); /* a clock that did not go on */
    for (double word = 1e-9; word < 1e3; word *= 2) {
        int rounds = cli_plan_rounds(word);
        assert_true(rounds >= 1 && rounds <= before);
        before = rounds;
    }
    assert_int_equal(before, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_combinations),
        cmocka_unit_test(test_other_strategies_are_refused),
        cmocka_unit_test(test_rows_that_are_refused_are_left_out),
        cmocka_unit_test(test_a_busy_machine_is_told),
        cmocka_unit_test(test_a_fastest_that_cannot_be_is_marked),
        cmocka_unit_test(test_there_may_be_nothing_to_recommend),
        cmocka_unit_test(test_times_of_steps),
        cmocka_unit_test(test_rows_tell_what_is_moved),
        cmocka_unit_test(test_parts_that_are_measured),
        cmocka_unit_test(test_usages_that_are_measured),
        cmocka_unit_test(test_this_host_is_measured),
        cmocka_unit_test(test_slow_networks_are_measured),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
