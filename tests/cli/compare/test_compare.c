/* trireme compare: what it runs, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/session.h"

#include "base/text/json.h"
#include "base/files/file.h"

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
