/* trireme plan: runs that check a plan, and what is said of rows that there are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/plan/plan.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "cli/session.h"

/* A run of some steps is the beginning of the training, whose schedule may be longer than the run. */
static void test_schedules_do_not_end_with_a_run(void **state)
{
    (void)state;
    static const char *const schedules[] = {"optimizer.schedule={kind: cosine, warmup: 150000}",
                                            "optimizer.schedule={kind: plateau, factor: 0.5, patience: 1}"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        struct session session;
        int code = run(&session, "plan", "tiny.yaml", "--set", schedules[i], "--set", "train.steps=200000",
                       "--set", "train.evaluate_every=10", "--workers", "1", "--strategies", "allreduce",
                       "--seconds", "0", "--verify", "--runs", "1", NULL);
        if (code != 0 || !strstr(session.text[0], "measured ")) session_show(&session);
        assert_int_equal(code, 0);
        assert_non_null(strstr(session.text[0], "measured "));
        assert_null(strstr(session.text[0], "failed"));
        session_release(&session);
    }
}

/* Rows that are left out for one reason are named in one line. */
static void test_reasons_are_said_once(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "plan", "tiny.yaml", "--workers", "1", "--seconds", "0", NULL);
    const char *reason = "a single process has nobody to share with", *text = session.text[0];
    const char *first = code == 0 ? strstr(text, reason) : NULL;
    if (!first) session_show(&session);
    assert_non_null(first);
    assert_null(strstr(first + 1, reason));
    assert_non_null(strstr(text, "left out on 1 worker: easgd,replicas=1; "));
    assert_non_null(strstr(text, "gossip,replicas=1; "));
    assert_non_null(strstr(text, "local-sgd,replicas=1; "));
    session_release(&session);
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

/* With --grow two workers compute twice the batch, and what they are compared with is one process and its
 * batch. */
static void test_batches_grow(void **state)
{
    (void)state;
    static const char *const rows[] = {"\"workers\": 1,\n      \"processes\": 1,\n      \"batch\": 10,",
                                       "\"workers\": 2,\n      \"processes\": 2,\n      \"batch\": 20,"};
    for (int grows = 0; grows < 2; grows++) {
        struct session session;
        struct tr_file_content json;
        int code = run(&session, "plan", "tiny.yaml", "--workers", "2", "--strategies", "allreduce",
                       "--seconds", "0", "--json", "grown.json", grows ? "--grow" : NULL, NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        session_release(&session);
        assert_int_equal(tr_file_read("grown.json", 1 << 20, &json), TR_OK);
        assert_non_null(strstr(json.data, rows[0]));
        assert_int_equal(strstr(json.data, rows[1]) != NULL, grows);
        tr_file_content_free(&json);
    }
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
        cmocka_unit_test(test_a_busy_machine_is_told),
        cmocka_unit_test(test_a_fastest_that_cannot_be_is_marked),
        cmocka_unit_test(test_schedules_do_not_end_with_a_run),
        cmocka_unit_test(test_reasons_are_said_once),
        cmocka_unit_test(test_slow_networks_are_measured),
        cmocka_unit_test(test_times_of_steps),
        cmocka_unit_test(test_rows_tell_what_is_moved),
        cmocka_unit_test(test_batches_grow),
        cmocka_unit_test(test_parts_that_are_measured),
        cmocka_unit_test(test_usages_that_are_measured),
        cmocka_unit_test(test_this_host_is_measured),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
