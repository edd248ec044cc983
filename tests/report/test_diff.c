/* Where runs part, from their files. */
#include "refuse.h"
#include "trireme/report.h"

#include "report/pages.h"
#include "scratch.h"

#include "base/files/file.h"
#include "trireme/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void put(const char *run, const char *name, const char *text)
{
    put_file(scratch_place, run, name, text);
}

static void remove_file(const char *run, const char *name)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s/%s", scratch_place, run, name);
    assert_int_equal(tr_file_remove(NULL, path), TR_OK);
}

#define JOURNAL(seed, hash, loss)                                                                            \
    "{\"event\":\"start\",\"name\":\"n\",\"settings\":\"s" seed "\",\"seed\":" seed "}\n"                    \
    "{\"event\":\"step\",\"step\":5,\"loss\":" loss "}\n"                                                    \
    "{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"" hash "\"}\n"
#define STEP(step, loss, first, second, gradient, parameter)                                                 \
    "{\"step\":" step ",\"loss\":\"" loss "\",\"outputs\":[{\"conv\":\"" first "\"},{\"conv\":\"" second     \
    "\"}],"                                                                                                  \
    "\"gradient\":{\"w\":\"" gradient "\"},\"parameters\":{\"w\":\"" parameter "\"}}\n"
#define BEGIN(step, parameter) "{\"step\":" step ",\"parameters\":{\"w\":\"" parameter "\"}}\n"

/* Compares runs "a" and "b"; the text must say what is expected. */
static void expect_verdict_of(bool equal, const char *what)
{
    char a[SCRATCH_PATH + 8], b[SCRATCH_PATH + 8], *text;
    bool found;
    snprintf(a, sizeof a, "%s/a", scratch_place);
    snprintf(b, sizeof b, "%s/b", scratch_place);
    assert_int_equal(tr_diff(a, b, &found, &text), TR_OK);
    if (found != equal || !strstr(text, what)) fail_msg("expected \"%s\" in:\n%s", what, text);
    assert_ptr_equal(strstr(text, equal ? "the runs are equal" : "the runs are not equal"), text);
    tr_text_free(text);
}

static void the_first_difference_is_named(void **state)
{
    (void)state;
    put("a", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("b", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("a", "digests.jsonl",
        BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "q") STEP("3", "m", "x", "y", "g", "r"));
    put("b", "digests.jsonl",
        BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "q") STEP("3", "m", "x", "y", "g", "r"));
    expect_verdict_of(true, "equal in all 3 steps that both recorded, up to step 3");

    expect_verdict_of(true, "settings: equal (s1)\n");
    expect_verdict_of(true, "hash: equal (h)\n");

    put("b", "journal.jsonl", JOURNAL("1", "other", "0.5"));
    put("b", "digests.jsonl",
        BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "q") STEP("3", "k", "x", "z", "h", "s"));
    expect_verdict_of(false, "hash: differ (h and other)\n");
    expect_verdict_of(false,
                      "first difference: step 3, microbatch 1, output of layer \"conv\"; equal up to step 1");
    put("b", "digests.jsonl", BEGIN("0", "p") STEP("1", "k", "x", "y", "h", "s"));
    expect_verdict_of(false, "step 1, the loss; equal up to step 0");
    put("b", "digests.jsonl", BEGIN("0", "p") STEP("1", "l", "x", "y", "h", "s"));
    expect_verdict_of(false, "step 1, gradient of \"w\"");
    put("b", "digests.jsonl", BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "s"));
    expect_verdict_of(false, "step 1, parameter \"w\"");
    put("b", "digests.jsonl", BEGIN("0", "o"));
    expect_verdict_of(false, "step 0, parameter \"w\"");
    put("b", "digests.jsonl", BEGIN("0", "p") "{\"step\":1,\"loss\":\"l\",\"outputs\":[{\"conv\":\"x\"}]}\n");
    expect_verdict_of(false, "step 1, the number of microbatches; equal up to step 0 (1 steps compared)");
    put("b", "digests.jsonl", STEP("3", "n", "x", "y", "g", "r"));
    expect_verdict_of(false, "first difference: step 3, the loss\n"); /* which only a has steps before */
    /* Steps that only one of them has say nothing. */
    put("b", "digests.jsonl", STEP("2", "l", "x", "y", "g", "s"));
    expect_verdict_of(false, "none of the same step");
}

static void steps_done_again_count_once(void **state)
{
    (void)state;
    put("a", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("b", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("a", "digests.jsonl",
        BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "q") STEP("2", "m", "x", "y", "g", "r"));
    /* Killed after a second step that came out otherwise, taken up again after the first. */
    put("b", "digests.jsonl",
        BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "q") STEP("2", "?", "x", "y", "g", "r") BEGIN("1", "q")
            STEP("2", "m", "x", "y", "g", "r"));
    expect_verdict_of(true, "equal in all 3 steps");
    /* The same where the second time is recorded as the first one was; and of lines without a step. */
    put("b", "digests.jsonl",
        BEGIN("0", "p") STEP("1", "?", "x", "y", "g", "q")
            STEP("1", "l", "x", "y", "g", "q") "{\"loss\":\"l\"}\n{\"step\":\"two\"}\n" STEP("2", "m", "x",
                                                                                             "y", "g", "r"));
    expect_verdict_of(true, "equal in all 3 steps that both recorded, up to step 2");
    /* A cut last line is no difference. */
    put("b", "digests.jsonl", BEGIN("0", "p") STEP("1", "l", "x", "y", "g", "q") "{\"step\":2,\"lo");
    expect_verdict_of(true, "equal in all 2 steps");
}

static void without_digests_reports_tell(void **state)
{
    (void)state;
    put("c", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("d", "journal.jsonl", JOURNAL("2", "i", "0.25"));
    char a[SCRATCH_PATH + 8], b[SCRATCH_PATH + 8], *text;
    bool equal;
    snprintf(a, sizeof a, "%s/c", scratch_place);
    snprintf(b, sizeof b, "%s/d", scratch_place);
    assert_int_equal(tr_diff(a, b, &equal, &text), TR_OK);
    assert_false(equal);
    assert_non_null(strstr(text, "seed 1 and 2"));
    assert_non_null(strstr(text, "from step 5 on"));
    assert_non_null(strstr(text, "record_digests"));
    tr_text_free(text);
    assert_int_equal(tr_diff(a, "/nowhere", &equal, &text), TR_ENOTFOUND);
}

/* Whether losses were equal before is told, and of the settings those that differ. */
static void losses_and_settings_that_differ_are_told(void **state)
{
    (void)state;
#define BEGUN(batch, parts, size)                                                                            \
    "{\"event\":\"start\",\"name\":\"n\",\"settings\":\"s" batch parts size "\",\"seed\":1,\"batch\":" batch \
    ",\"microbatches\":" parts ",\"parameters\":" size "}\n"
#define TOLD(step, loss) "{\"event\":\"step\",\"step\":" step ",\"loss\":" loss "}\n"
    static const struct {
        const char *a, *b, *told, *untold;
    } cases[] = {
        {BEGUN("8", "2", "30") TOLD("5", "1"), BEGUN("8", "2", "30") TOLD("5", "2"),
         "differ from step 5 on (1 and 2), the first that both reported;", "batch"},
        {BEGUN("8", "2", "30") TOLD("5", "1") TOLD("10", "3"),
         BEGUN("8", "2", "30") TOLD("5", "1") TOLD("10", "2"), "differ from step 10 on (3 and 2); train",
         "first"},
        /* Reports of other steps lie between. */
        {BEGUN("8", "2", "30") TOLD("1", "4") TOLD("2", "4") TOLD("3", "1"),
         BEGUN("8", "2", "30") TOLD("3", "2"),
         "differ from step 3 on (1 and 2), the first that both reported;", "batch"},
        {BEGUN("8", "2", "30") TOLD("4", "1"),
         BEGUN("8", "2", "30") TOLD("1", "4") TOLD("2", "4") TOLD("3", "4") TOLD("4", "2"),
         "differ from step 4 on (1 and 2), the first that both reported;", "batch"},
        {BEGUN("8", "2", "30"), BEGUN("9", "2", "30"), "; batch 8 and 9\n", "microbatches"},
        {BEGUN("8", "2", "30"), BEGUN("8", "4", "30"), "; microbatches 2 and 4\n", "; batch"},
        {BEGUN("8", "2", "30"), BEGUN("8", "2", "31"), "; parameters 30 and 31\n", "microbatches"},
    };
    remove_file("e", "digests.jsonl");
    remove_file("f", "digests.jsonl");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char a[SCRATCH_PATH + 8], b[SCRATCH_PATH + 8], *text;
        bool equal;
        put("e", "journal.jsonl", cases[i].a);
        put("f", "journal.jsonl", cases[i].b);
        snprintf(a, sizeof a, "%s/e", scratch_place);
        snprintf(b, sizeof b, "%s/f", scratch_place);
        assert_int_equal(tr_diff(a, b, &equal, &text), TR_OK);
        if (equal || !strstr(text, cases[i].told) || strstr(text, cases[i].untold))
            fail_msg("expected \"%s\" without \"%s\" in:\n%s", cases[i].told, cases[i].untold, text);
        tr_text_free(text);
    }
}

/* What was learned of two runs that may not have ended is said, and no more. */
static void expect_verdict(const char *verdict, const char *what)
{
    char a[SCRATCH_PATH + 8], b[SCRATCH_PATH + 8], *text;
    bool equal;
    snprintf(a, sizeof a, "%s/e", scratch_place);
    snprintf(b, sizeof b, "%s/f", scratch_place);
    assert_int_equal(tr_diff(a, b, &equal, &text), TR_OK);
    if (equal || strncmp(text, verdict, strlen(verdict)) != 0 || !strstr(text, what))
        fail_msg("expected \"%s\" and \"%s\" in:\n%s", verdict, what, text);
    tr_text_free(text);
}

#define START(seed)      "{\"event\":\"start\",\"name\":\"n\",\"settings\":\"s" seed "\",\"seed\":" seed "}\n"
#define LOSS(step, loss) "{\"event\":\"step\",\"step\":" step ",\"loss\":" loss "}\n"

static void runs_that_did_not_end_may_not_be_equal(void **state)
{
    (void)state;
    put("e", "journal.jsonl", START("1") LOSS("5", "0.5"));
    put("f", "journal.jsonl", START("1") LOSS("5", "0.5") LOSS("10", "0.25"));
    expect_verdict("no difference was found", "neither run did end");
    expect_verdict("no difference was found", "the reported losses are equal up to step 5\n");
    put("e", "journal.jsonl", START("1") LOSS("5", "0.75"));
    expect_verdict("the runs are not equal", "from step 5 on");
    put("e", "journal.jsonl", START("2") LOSS("5", "0.5"));
    expect_verdict("the runs are not equal", "seed 2 and 1");
    put("e", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    expect_verdict("no difference was found", "/f did not end");
    /* The hash of an end that the run went on from is not that of the run. */
    put("f", "journal.jsonl", JOURNAL("1", "h", "0.5") START("1") LOSS("10", "0.25"));
    expect_verdict("no difference was found", "/f did not end");
    put("e", "digests.jsonl", STEP("1", "l", "x", "y", "g", "q"));
    put("f", "digests.jsonl", STEP("1", "l", "x", "y", "g", "q"));
    expect_verdict("no difference was found", "equal in all 1 steps");
    put("f", "digests.jsonl", STEP("1", "l", "x", "y", "g", "r"));
    expect_verdict("the runs are not equal", "parameter \"w\"");
}

#define SHARED(strategy, options, ranks, rate)                                                               \
    "{\"event\":\"start\",\"name\":\"n\",\"settings\":\"s" rate                                              \
    "\",\"settings_text\":\"optimizer: {rate: " rate "}\\n\",\"strategy\":\"" strategy                       \
    "\",\"strategy_options\":\"" options "\",\"ranks\":" ranks "}\n"                                         \
    "{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"h\"}\n"

/* How processes share a job is no part of what decides the hash of one; it is named apart from that. */
static void strategies_and_settings_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *line;
    } cases[] = {
        {SHARED("allreduce", "{bucket: 4}", "2", "1"), SHARED("allreduce", "{bucket: 4}", "2", "1"),
         "strategy: equal (allreduce on 2 processes)\n"},
        {SHARED("allreduce", "{bucket: 4}", "1", "1"), SHARED("local-sgd", "{every: 8}", "2", "1"),
         "strategy: differ (allreduce on 1 process and local-sgd on 2 processes)\n"},
        {SHARED("local-sgd", "{replicas: 2, every: 4}", "2", "1"),
         SHARED("local-sgd", "{replicas: 2, every: 8}", "2", "1"),
         "strategy: differ (local-sgd on 2 processes: every 4 and 8)\n"},
        {SHARED("allreduce", "{bucket: 4}", "1", "1"), SHARED("allreduce", "{bucket: 4}", "2", "1"),
         "strategy: differ (allreduce on 1 process and allreduce on 2 processes)\n"},
        {SHARED("allreduce", "{bucket: 4}", "1", "1"), SHARED("allreduce", "{bucket: 4}", "1", "2"),
         "settings: differ (s1 and s2); optimizer.rate 1 and 2\n"},
    };
    remove_file("a", "digests.jsonl");
    remove_file("b", "digests.jsonl");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("a", "journal.jsonl", cases[i].a);
        put("b", "journal.jsonl", cases[i].b);
        expect_verdict_of(true, cases[i].line); /* by their hash */
    }
}

/* What only one of them recorded of a step is no difference. */
static void records_of_less_say_less(void **state)
{
    (void)state;
    put("a", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("b", "journal.jsonl", JOURNAL("1", "h", "0.5"));
    put("a", "digests.jsonl", STEP("1", "l", "x", "y", "g", "q"));
    put("b", "digests.jsonl",
        "{\"step\":1,\"loss\":\"l\",\"outputs\":[{\"conv\":\"x\"},{\"conv\":\"y\"}],"
        "\"parameters\":{\"w\":\"q\"}}\n");
    expect_verdict_of(true, "equal in all 1 steps");
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    char a[SCRATCH_PATH + 8], b[SCRATCH_PATH + 8], *whole, *text;
    bool equal;
    snprintf(a, sizeof a, "%s/a", scratch_place);
    snprintf(b, sizeof b, "%s/b", scratch_place);
    put("a", "journal.jsonl", SHARED("local-sgd", "{replicas: 2, every: 4}", "2", "1"));
    put("b", "journal.jsonl", SHARED("local-sgd", "{replicas: 2, every: 8}", "2", "2"));
    assert_int_equal(tr_diff(a, b, &equal, &whole), TR_OK);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_diff(a, b, &equal, &text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) {
            assert_string_equal(text, whole);
            tr_text_free(text);
        }
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_text_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_difference_is_named),
        cmocka_unit_test(steps_done_again_count_once),
        cmocka_unit_test(records_of_less_say_less),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(strategies_and_settings_are_named),
        cmocka_unit_test(without_digests_reports_tell),
        cmocka_unit_test(runs_that_did_not_end_may_not_be_equal),
        cmocka_unit_test(losses_and_settings_that_differ_are_told),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
