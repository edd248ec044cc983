/* trireme compare: what it says about results, what it runs, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/compare/compare.h"
#include "cli/compare/judge.h"
#include "cli/session.h"

#include "base/alloc.h"
#include "base/text/json.h"
#include "base/files/file.h"
#include "train/describe/waited.h"

/* ---- what is said ---- */

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

/* ---- what is run ---- */

static void test_runs(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "compare", "tiny.yaml", "--workers", "1,2,8", "--strategies",
                   "allreduce,local-sgd,replicas=2,every=3", "--steps", "6", "--threads", "2", "--json",
                   "c.json", "--csv", "c.csv", "--set", "train.microbatches=4", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "one process"));
    assert_non_null(strstr(session.text[0], " equal"));
    assert_non_null(strstr(session.text[0], "1 synchronous run ended with the weights of one process"));
    assert_non_null(
        strstr(session.text[0], "left out    allreduce on 8 workers: 8 ranks share 4 microbatches"));
    assert_non_null(strstr(session.text[0], "on 1 worker: a single process has nobody to share with"));
    assert_non_null(strstr(session.text[0], "best here"));
    session_release(&session);
    struct tr_file_content content;
    tr_json *document;
    assert_int_equal(tr_file_read("c.json", 1 << 20, &content), TR_OK);
    assert_int_equal(tr_json_parse(content.data, content.size, "c.json", &document), TR_OK);
    const struct tr_json_value *runs = tr_json_find(tr_json_root(document), "runs");
    assert_int_equal(runs->count, 6);
    assert_int_equal(tr_json_find(runs->first, "steps")->integer, 6);
    tr_json_destroy(&document);
    tr_file_content_free(&content);
    assert_true(tr_file_exists("c.csv"));
}

/* A target ends runs, and the time to it is known. */
static void test_runs_until(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "compare", "tiny.yaml", "--workers", "1", "--strategies", "allreduce", "--until",
                   "accuracy=0.01", "--rounds", "2", "--set", "train.steps=500", "--set",
                   "train.evaluate_every=2", "--json", "u.json", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "to 1 %"));
    assert_non_null(strstr(session.text[0], "the fastest of each:"));
    session_release(&session);
    struct tr_file_content content;
    tr_json *document;
    assert_int_equal(tr_file_read("u.json", 1 << 20, &content), TR_OK);
    assert_int_equal(tr_json_parse(content.data, content.size, "u.json", &document), TR_OK);
    const struct tr_json_value *alone = tr_json_find(tr_json_root(document), "runs")->first;
    assert_true(tr_json_find(alone, "steps")->integer < 500);
    assert_non_null(tr_json_find(alone, "target_seconds"));
    tr_json_destroy(&document);
    tr_file_content_free(&content);
}

#define ENDLESS "--set", "train.steps=1000000000", "--set", "train.log_every=1000000"

/* The budget ends a run, which is evaluated where it stands. */
static void test_the_budget_ends_runs(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "compare", "tiny.yaml", "--workers", "1", "--budget", "1s", "--json", "b.json",
                   ENDLESS, NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "(step "));
    const char *row = strstr(session.text[0], "one process");
    assert_non_null(row);
    session_release(&session);
    struct tr_file_content content;
    tr_json *document;
    assert_int_equal(tr_file_read("b.json", 1 << 20, &content), TR_OK);
    assert_int_equal(tr_json_parse(content.data, content.size, "b.json", &document), TR_OK);
    const struct tr_json_value *one = tr_json_find(tr_json_root(document), "runs")->first;
    const double accuracy = tr_json_number_or_nan(one, "accuracy");
    assert_true(accuracy >= 0 && accuracy <= 1);
    assert_true(tr_json_number_or_nan(one, "loss") >= 0);
    tr_json_destroy(&document);
    tr_file_content_free(&content);
}

static void test_an_interrupt_ends_the_run_and_says_what_there_is(void **state)
{
    (void)state;
    struct session session;
    const char *const arguments[] = {"compare", "tiny.yaml", "--workers", "1",
                                     "--json",  "i.json",    ENDLESS,     NULL};
    session_start(&session, &(struct setup){.arguments = arguments});
    session_wait_for(&session, 0, "strategy");
    usleep(300000);
    session_signal(&session, SIGINT);
    int code = session_end(&session);
    if (code != 3) session_show(&session);
    assert_int_equal(code, 3);
    assert_non_null(strstr(session.text[0], "stopped"));
    assert_true(tr_file_exists("i.json"));
    session_release(&session);
}

static void test_failures_are_told(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "compare", "tiny.yaml", "--workers", "1", "--strategies", "allreduce", "--steps",
                   "3", "--set", "optimizer.rate=1e30", NULL);
    assert_int_equal(code, 1);
    assert_non_null(strstr(session.text[0], "not finite"));
    session_release(&session);
}

/* What no strategy can run is tried once. */
static void test_missing_data_end_the_comparison(void **state)
{
    (void)state;
    struct session session;
    write_text("records.yaml",
               "name: records\n"
               "data:\n"
               "  train: {tfrecord: {path: nowhere.tfrecord, height: 4, width: 4, classes: 3}}\n"
               "input: {shape: [4, 4, 1]}\n"
               "layers: [dense: 3]\n"
               "optimizer: {rule: adam, rate: 0.01}\n"
               "train: {batch: 10, microbatches: 2, steps: 4}\n");
    int code = run(&session, "compare", "records.yaml", "--workers", "1,2", NULL);
    const char *said =
        strstr(session.text[1], "trireme compare: one process cannot run the job, so no strategy can: ");
    if (code != 2 || !said) session_show(&session);
    assert_int_equal(code, 2);
    assert_non_null(said);
    assert_non_null(strstr(said, "nowhere.tfrecord"));
    assert_null(strstr(session.text[0], "allreduce"));
    session_release(&session);
}

/* Processes that cannot be started are found before the table begins, once for all runs. */
static void test_impossible_processes_are_refused_first(void **state)
{
    (void)state;
    struct session session;
    int code =
        run_with(&session, (struct setup){.program = "sh"}, "-c", "ulimit -n 20; exec \"$0\" \"$@\"",
                 TRIREME_PROGRAM, "compare", "tiny.yaml", "--workers", "2,16", "--strategies", "allreduce",
                 "--steps", "1", "--set", "train.microbatches=16", "--set", "train.batch=16", NULL);
    expect_error(2, "open files each, of which 20 are allowed here", &session, code);
    session_release(&session);
}

static void test_nonsense_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *option, *value, *part;
    } wrong[] = {
        {"--strategies", "allreduce,telepathy", "--strategies: strategy \"telepathy\" is none of allreduce"},
        {"--strategies", "local-sgd,telepathy=1", "unknown key \"telepathy\""},
        {"--strategies", "replicas=2", "strategy \"replicas=2\" is none of allreduce"},
        {"--until", "0.9", "write accuracy=0.98"},
        {"--until", "accuracy=2", "is not between 0 and 1"},
        {"--budget", "5x", "write 90s, 5m or 1h"},
        {"--budget", "-1", "is negative"},
        {"--workers", "0", "--workers"},
        /* Before the runs, not after them. */
        {"--csv", "nowhere/x.csv", "there is no directory \"nowhere\""},
        {"--json", "nowhere/x.json", "there is no directory \"nowhere\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct session session;
        int code = run(&session, "compare", "tiny.yaml", wrong[i].option, wrong[i].value, NULL);
        expect_error(2, wrong[i].part, &session, code);
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
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_runs_until),
        cmocka_unit_test(test_the_budget_ends_runs),
        cmocka_unit_test(test_an_interrupt_ends_the_run_and_says_what_there_is),
        cmocka_unit_test(test_failures_are_told),
        cmocka_unit_test(test_missing_data_end_the_comparison),
        cmocka_unit_test(test_impossible_processes_are_refused_first),
        cmocka_unit_test(test_nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
