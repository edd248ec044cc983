/* trireme compare: what it says about results, to people and to programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/compare/compare.h"
#include "cli/compare/judge.h"

#include "base/alloc.h"
#include "base/text/json.h"
#include "refuse.h"
#include "train/describe/waited.h"

enum { ALONE, REDUCED, LOCAL, SERVER, SYNCHRONOUS, MISSING, RUNS };

static struct cli_compare_case cases[RUNS] = {
    [ALONE] = {.strategy = "allreduce", .workers = 1, .ranks = 1, .threads = 4, .alone = true},
    [REDUCED] = {.strategy = "allreduce", .workers = 4, .ranks = 4, .threads = 1},
    [LOCAL] = {.strategy = "local-sgd,replicas=4", .workers = 4, .ranks = 4, .threads = 1, .own_hash = true},
    [SERVER] =
        {.strategy = "server,mode=async", .workers = 2, .ranks = 3, .threads = 2, .asynchronous = true},
    [SYNCHRONOUS] = {.strategy = "server,mode=sync", .workers = 2, .ranks = 3, .threads = 2},
    [MISSING] = {.strategy = "pipeline,stages=2", .workers = 1, .ranks = 1, .left_out = "too few \"ranks\""},
};
static const struct cli_compare_plan plan = {.cases = cases, .count = RUNS};

/* Results as they are when all went well. */
static void fill(struct cli_compare_result results[RUNS])
{
    static const double speed[RUNS] = {1000, 2500, 3000, 1800, 900, 0};
    memset(results, 0, RUNS * sizeof *results);
    for (int i = 0; i < MISSING; i++) {
        results[i] = (struct cli_compare_result){
            .end = CLI_COMPARE_DONE,
            .step = 100,
            .seconds = 10,
            .examples_per_second = speed[i],
            .accuracy = 0.97 + 0.001 * i,
            .loss = 0.1,
            .target_seconds = NAN,
            .target_epochs = NAN,
            .hash = "aaaaaaaabbbb",
            .has_statistics = true,
            .statistics = {.sent = 1024, .shared = 1024, .waiting = 0.25, .slowest = -1},
        };
    }
    strcpy(results[LOCAL].hash, "cccccccc");
    strcpy(results[SERVER].hash, "dddddddd");
    results[SERVER].statistics.mean_staleness = 0.5;
    results[SERVER].statistics.most_staleness = 3;
}

static void expect_row(const struct cli_compare_orders *orders, const struct cli_compare_result *results,
                       int index, const char *expected)
{
    char *row = cli_compare_row(orders, &plan, results, index);
    assert_non_null(row);
    assert_string_equal(row, expected);
    tr_free(row);
}

static void expect_verdict(const struct cli_compare_orders *orders, const struct cli_compare_result *results,
                           const char *part, bool there)
{
    char *text = cli_compare_verdict(orders, &plan, results);
    assert_non_null(text);
    if ((strstr(text, part) != NULL) != there)
        fail_msg("\"%s\" %s: %s", part, there ? "missing" : "said", text);
    tr_free(text);
}

static void test_rows(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {0};
    struct cli_compare_result results[RUNS];
    fill(results);
    char *head = cli_compare_head(&orders, &plan);
    assert_string_equal(head,
                        "strategy              workers  threads  examples/s  speed-up  accuracy  staleness  "
                        "moved/step  waiting  hash");
    tr_free(head);
    expect_row(&orders, results, ALONE,
               "one process                 1        4       1,000      1.00    0.9700          -           "
               "-        "
               "-  aaaaaaaa");
    expect_row(
        &orders, results, REDUCED,
        "allreduce                   4        1       2,500      2.50    0.9710          -     2.0 KiB     "
        "25 %  aaaaaaaa equal");
    expect_row(
        &orders, results, SERVER,
        "server,mode=async         2+1        2       1,800      1.80    0.9730     0.50/3     2.0 KiB     "
        "25 %  dddddddd");
    results[SERVER].statistics.more_staleness = true; /* than there are bins */
    expect_row(
        &orders, results, SERVER,
        "server,mode=async         2+1        2       1,800      1.80    0.9730    0.50/3+     2.0 KiB     "
        "25 %  dddddddd");
    results[LOCAL].end = CLI_COMPARE_FAILED;
    strcpy(results[LOCAL].failure, "disk full");
    expect_row(&orders, results, LOCAL, "local-sgd,replicas=4        4        1  disk full");
}

/* 10 steps of 100 examples in 20 s; a slow beginning does not count. */
static void test_speed_after_the_first_step(void **state)
{
    (void)state;
    static const struct {
        int64_t first_step;
        double first_seconds, speed;
    } speeds[] = {{2, 4, 50}, {2, 12, 100}, {5, 15, 100}, {0, 0, 50}, {10, 20, 50}, {9, 20, 50}, {10, 5, 50}};
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        assert_float_equal(cli_compare_later_speed(50, 10, 20, speeds[i].first_step, speeds[i].first_seconds),
                           speeds[i].speed, 1e-9);
}

/* Combinations that are left out for one reason share a line; other reasons and other workers have their own.
 */
static void test_what_is_left_out(void **state)
{
    (void)state;
    static struct cli_compare_case missing[] = {
        {.strategy = "allreduce", .workers = 1, .ranks = 1, .threads = 4, .alone = true},
        {.strategy = "gossip", .workers = 2, .left_out = "too few"},
        {.strategy = "easgd", .workers = 1, .left_out = "too few"},
        {.strategy = "pipeline", .workers = 2, .left_out = "one layer"},
        {.strategy = "local-sgd", .workers = 2, .left_out = "too few"},
    };
    static const struct cli_compare_plan some = {.cases = missing, .count = 5};
    static const struct cli_compare_orders orders = {0};
    struct cli_compare_result results[RUNS];
    fill(results);
    char *text = cli_compare_verdict(&orders, &some, results);
    assert_non_null(text);
    assert_non_null(strstr(text, "\nleft out    gossip; local-sgd on 2 workers: too few\n"
                                 "left out    easgd on 1 worker: too few\n"
                                 "left out    pipeline on 2 workers: one layer\n"));
    assert_null(strstr(text, "left out    local-sgd"));
    tr_free(text);
}

static void test_the_verdict(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {0};
    struct cli_compare_result results[RUNS];
    fill(results);
    assert_int_equal(cli_compare_best(&orders, &plan, results), LOCAL);
    expect_verdict(&orders, results, "left out    pipeline,stages=2 on 1 worker: too few", true);
    expect_verdict(&orders, results, "2 synchronous runs ended with the weights of one process", true);
    expect_verdict(&orders, results, "best here   local-sgd,replicas=4 on 4 workers: 3.00 times as fast",
                   true);
    results[ALONE].examples_per_second = 5000;
    assert_int_equal(cli_compare_best(&orders, &plan, results), ALONE);
    expect_verdict(&orders, results, "best here   one process: ", true);
    for (int i = 1; i < MISSING; i++) results[i].end = CLI_COMPARE_STOPPED;
    expect_verdict(&orders, results, "best here", false); /* nothing to compare with */
    results[SYNCHRONOUS].end = CLI_COMPARE_OUT_OF_TIME;   /* is one more with figures */
    expect_verdict(&orders, results, "best here   one process: ", true);
    results[ALONE].examples_per_second = 600;
    expect_verdict(&orders, results, "best here   server,mode=sync on 2 workers: 1.50 times as fast", true);
    expect_verdict(&orders, results, "one process\n", true); /* with its weights there is no more to say */
    results[SYNCHRONOUS].step = 99;
    expect_verdict(&orders, results, "one process, accuracy 0.9740 against 0.9700\n", true);
    results[ALONE].accuracy = NAN;
    expect_verdict(&orders, results, ", accuracy", false);
    results[ALONE].end = CLI_COMPARE_FAILED; /* so that nothing is faster than it */
    expect_verdict(&orders, results, "times as fast", false);
    results[REDUCED].end = CLI_COMPARE_DONE; /* nor is the better of two others compared with it */
    expect_verdict(&orders, results, "best here   allreduce on 4 workers\n", true);
    results[REDUCED].end = CLI_COMPARE_STOPPED;
    results[ALONE].end = CLI_COMPARE_DONE;
    results[ALONE].examples_per_second = 750;
    cases[SYNCHRONOUS].workers = 1; /* and servers */
    expect_verdict(&orders, results, "best here   server,mode=sync on 1 worker: 1.20 times", true);
    cases[SYNCHRONOUS].workers = 2;
}

/* Figures as a busy machine gives them: they are marked, and no such run is the best. */
static void test_figures_that_cannot_be_are_marked(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {0};
    struct cli_compare_result results[RUNS];
    fill(results);
    assert_true(cli_compare_can_be(2.4, 2, 0.5)); /* caches together hold more */
    assert_false(cli_compare_can_be(29.21, 2, 0.5));
    assert_false(cli_compare_can_be(1.5, 2, 1.01));
    assert_true(cli_compare_can_be(1.5, 2, 1));
    assert_true(cli_compare_can_be(NAN, 2, NAN));
    assert_true(cli_compare_can_be(2.5, 2, 1.005)); /* just so */
    assert_true(cli_compare_steady(1250, 1000) && cli_compare_steady(1000, 1250));
    assert_true(cli_compare_steady(1000, 900));
    assert_false(cli_compare_steady(1000, 700));
    assert_false(cli_compare_steady(700, 1000));
    assert_true(cli_compare_steady(1000, 0)); /* not measured */
    expect_verdict(&orders, results, "busy", false);
    results[LOCAL].examples_per_second = 29210;
    assert_true(cli_compare_doubtful(&plan, results, LOCAL));
    assert_int_equal(cli_compare_best(&orders, &plan, results), REDUCED);
    expect_row(
        &orders, results, LOCAL,
        "local-sgd,replicas=4        4        1      29,210    29.21?    0.9720          -     2.0 KiB     "
        "25 %  cccccccc");
    expect_verdict(&orders, results, "figures with ? cannot be (1 of the runs)", true);
    expect_verdict(&orders, results, "--rounds 3", true);
    fill(results);
    results[ALONE].again = 500;
    expect_verdict(&orders, results, "one process learned 1,000 examples/s at first and 500 at the end",
                   true);
    expect_verdict(&orders, results, "--rounds 3", true);
}

/* What a rank waited while the first one saved is no part of the training. */
static void test_nobody_waits_longer_than_the_training(void **state)
{
    (void)state;
    assert_true(tr_train_waited(3, 4, 10) == 3);
    assert_true(tr_train_waited(8, 4, 10) == 6); /* two seconds were spent while nobody trained */
    assert_true(tr_train_waited(1, 12, 10) == 0);
    assert_true(tr_train_waited(5, 0, 0) == 5); /* not known */
}

static void test_hashes(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {0};
    struct cli_compare_result results[RUNS];
    fill(results);
    assert_int_equal(cli_compare_hash(&plan, results, REDUCED), CLI_HASH_EQUAL);
    assert_int_equal(cli_compare_hash(&plan, results, LOCAL), CLI_HASH_OTHER);
    assert_int_equal(cli_compare_hash(&plan, results, SERVER), CLI_HASH_OTHER);
    strcpy(results[SYNCHRONOUS].hash, "eeeeeeee");
    assert_int_equal(cli_compare_hash(&plan, results, SYNCHRONOUS), CLI_HASH_NOT_EQUAL);
    expect_verdict(&orders, results, "NOT EQUAL: 1 synchronous run ended", true);
    results[SYNCHRONOUS].step = 99; /* hashes of different steps say nothing */
    assert_int_equal(cli_compare_hash(&plan, results, SYNCHRONOUS), CLI_HASH_OTHER);
    expect_verdict(&orders, results, "NOT EQUAL", false);
}

static void test_targets(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {.until = 0.98};
    struct cli_compare_result results[RUNS];
    fill(results);
    assert_int_equal(cli_compare_best(&orders, &plan, results), -1);
    expect_verdict(&orders, results, "no run met 98 %", true);
    results[REDUCED].target_seconds = 5;
    results[REDUCED].target_epochs = 1.25;
    expect_verdict(&orders, results, "allreduce on 4 workers: met 98 %, which one process did not", true);
    results[ALONE].target_seconds = 8;
    assert_int_equal(cli_compare_best(&orders, &plan, results), REDUCED); /* not the fastest, but the first */
    expect_verdict(&orders, results, "1.60 times as fast as one process at meeting the target", true);
    expect_row(&orders, results, REDUCED,
               "allreduce                   4        1       2,500      2.50        5.0 s    1.25    0.9710  "
               "        "
               "-     2.0 KiB     25 %  aaaaaaaa equal");
    expect_row(&orders, results, LOCAL,
               "local-sgd,replicas=4        4        1       3,000      3.00      not met       -    0.9720  "
               "        "
               "-     2.0 KiB     25 %  cccccccc");
}

static void test_the_better_of_two_rounds_counts(void **state)
{
    (void)state;
    static const struct cli_compare_orders speed = {0}, target = {.until = 0.9};
    struct cli_compare_result results[RUNS];
    fill(results);
    struct cli_compare_result none = {0}, slow = results[ALONE], fast = results[REDUCED],
                              bad = results[ALONE];
    bad.end = CLI_COMPARE_FAILED;
    assert_true(cli_compare_counts(&speed, &none, &slow));
    assert_true(cli_compare_counts(&speed, &slow, &fast));
    assert_false(cli_compare_counts(&speed, &fast, &slow));
    assert_true(cli_compare_counts(&speed, &fast, &bad));
    assert_false(cli_compare_counts(&speed, &bad, &fast));
    slow.target_seconds = 3; /* met the target, and the faster one did not */
    assert_false(cli_compare_counts(&target, &slow, &fast));
    assert_true(cli_compare_counts(&target, &fast, &slow));
}

/* Each figure of a run in its own column and member, and none in another one's. */
static void test_figures_have_their_places(void **state)
{
    static const struct cli_compare_orders orders = {.model = "m.yaml", .threads = 4};
    static const char row[] =
        "\n\"server,mode=async\",2,3,2,done,100,10,1800,1.8,4.5,1.25,0.975,0.125,1.5,3,7,2048,512,"
        "0.625,0.25,dddddddd,,\"\",no\n";
    static const char member[] = "{\"strategy\": \"server,mode=async\", \"workers\": 2, \"processes\": 3, "
                                 "\"threads\": 2, \"end\": \"done\","
                                 " \"steps\": 100, \"seconds\": 10, \"examples_per_second\": 1800, "
                                 "\"speedup\": 1.8, \"target_seconds\": 4.5,"
                                 " \"target_epochs\": 1.25, \"accuracy\": 0.975, \"loss\": 0.125, \"hash\": "
                                 "\"dddddddd\", \"doubtful\": false,"
                                 " \"bytes_sent_per_step\": 2048, \"bytes_shared_per_step\": 512, "
                                 "\"computing\": 0.625, \"waiting\": 0.25,"
                                 " \"staleness_mean\": 1.5, \"staleness_most\": 3, \"dropped\": 7}";
    struct cli_compare_result results[RUNS];
    char *csv, *text;
    json_error_t error;
    (void)state;
    fill(results);
    struct cli_compare_result *one = &results[SERVER];
    one->accuracy = 0.975;
    one->loss = 0.125;
    one->target_seconds = 4.5;
    one->target_epochs = 1.25;
    one->dropped = 7;
    one->statistics = (struct cli_statistics){.sent = 2048,
                                              .shared = 512,
                                              .computing = 0.625,
                                              .waiting = 0.25,
                                              .mean_staleness = 1.5,
                                              .most_staleness = 3,
                                              .slowest = -1};
    assert_int_equal(cli_compare_csv(&plan, results, &csv), TR_OK);
    if (!strstr(csv, row)) fail_msg("no %s in\n%s", row, csv);
    tr_free(csv);
    assert_int_equal(cli_compare_json(&orders, &plan, results, &text), TR_OK);
    json_t *told = json_loads(text, 0, &error), *wanted = json_loads(member, 0, &error);
    assert_true(told && wanted);
    if (!json_equal(json_array_get(json_object_get(told, "runs"), SERVER), wanted))
        fail_msg("no %s in\n%s", member, text);
    json_decref(told);
    json_decref(wanted);
    tr_free(text);
    text = cli_compare_row(&orders, &plan, results, SERVER);
    assert_non_null(text);
    if (!strstr(text, " 1.50/3 ") || !strstr(text, " 2.5 KiB ")) fail_msg("%s", text);
    tr_free(text);
}

static void test_files(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {.model = "m.yaml", .threads = 4};
    struct cli_compare_result results[RUNS];
    char *csv, *json;
    fill(results);
    results[SERVER].examples_per_second = 12000; /* on two workers */
    results[ALONE].again = 500;
    assert_int_equal(cli_compare_csv(&plan, results, &csv), TR_OK);
    assert_non_null(strstr(csv, "\"allreduce\",4,4,1,done,100,10,2500,2.5,,,0.971,0.1,,,,1024,1024,0,0.25,"
                                "aaaaaaaabbbb,yes,\"\",no\n"));
    assert_non_null(strstr(csv, ",dddddddd,,\"\",yes\n"));
    assert_non_null(strstr(csv, "\"pipeline,stages=2\",1,1,0,left out,"));
    assert_non_null(strstr(csv, ",\"too few \"\"ranks\"\"\",\n"));
    size_t commas = 0, lines = 0;
    bool quoted = false;
    for (const char *at = csv; *at; at++) {
        quoted ^= *at == '"';
        commas += *at == ',' && !quoted;
        lines += *at == '\n';
    }
    assert_int_equal(lines, RUNS + 1);
    assert_int_equal(commas, 23 * lines); /* every row has all columns */
    tr_free(csv);
    assert_int_equal(cli_compare_json(&orders, &plan, results, &json), TR_OK);
    tr_json *document;
    assert_int_equal(tr_json_parse(json, strlen(json), "json", &document), TR_OK);
    const struct tr_json_value *runs = tr_json_find(tr_json_root(document), "runs");
    assert_int_equal(runs->count, RUNS);
    assert_int_equal(tr_json_find(tr_json_root(document), "best")->integer, LOCAL);
    assert_true(tr_json_find(runs->first->next, "hash_equal")->truth);
    const struct tr_json_value *run = runs->first;
    assert_true(tr_json_number_or_nan(run, "examples_per_second_again") == 500);
    for (int i = 0; i < MISSING; i++, run = run->next) {
        assert_int_equal(tr_json_find(run, "doubtful")->truth, i == SERVER);
        assert_int_equal(tr_json_find(run, "examples_per_second_again") != NULL, i == ALONE);
    }
    assert_null(tr_json_find(run, "doubtful")); /* not run */
    tr_json_destroy(&document);
    tr_free(json);
}

/* Whichever allocation fails, there is no text, and nothing stays behind. */
static void test_without_memory_there_is_no_text(void **state)
{
    (void)state;
    static const struct cli_compare_orders orders = {.model = "m.yaml", .threads = 4};
    struct cli_compare_result results[RUNS];
    fill(results);
    for (int kind = 0; kind < 5; kind++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            char *text = NULL;
            tr_status status = TR_OK;
            refuse_begin(at);
            if (kind == 0) text = cli_compare_head(&orders, &plan);
            if (kind == 1) text = cli_compare_row(&orders, &plan, results, REDUCED);
            if (kind == 2) text = cli_compare_verdict(&orders, &plan, results);
            if (kind == 3) status = cli_compare_csv(&plan, results, &text);
            if (kind == 4) status = cli_compare_json(&orders, &plan, results, &text);
            done = refuse_end();
            if (kind < 3) status = text ? TR_OK : TR_ENOMEM;
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("text %d, allocation %lld: %s", kind, (long long)at, tr_status_name(status));
            if (done) tr_free(text);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_speed_after_the_first_step),
        cmocka_unit_test(test_what_is_left_out),
        cmocka_unit_test(test_the_verdict),
        cmocka_unit_test(test_figures_that_cannot_be_are_marked),
        cmocka_unit_test(test_nobody_waits_longer_than_the_training),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_the_better_of_two_rounds_counts),
        cmocka_unit_test(test_figures_have_their_places),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_without_memory_there_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
