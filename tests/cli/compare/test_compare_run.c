/* One run of a comparison: the command that is started, what is heard of it, and how it ends. The program
 * that is started is this one, which then notes its arguments and says what the test wants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/compare/compare.h"
#include "cli/play.h"
#include "cli/program/signals.h"
#include "refuse.h"
#include "scratch.h"
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cli_compare_result result;
static struct tr_string_list no_set;

/* Runs a case with what the started program says; *arguments is what it was started with. */
static void run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                const struct cli_compare_case *one, const char *text, const char *code, char arguments[4096])
{
    struct cli_compare_orders own = *orders;
    struct cli_screen screen;
    struct tr_file_content content;
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    play_with(scratch_in("arguments"), text, code);
    if (!own.set) own.set = &no_set;
    own.model = "job.yaml";
    own.directory = scratch_place;
    cli_screen_begin(&screen, nowhere);
    assert_int_equal(cli_compare_run(&own, plan, one, &screen, &result), TR_OK);
    cli_screen_end(&screen);
    fclose(nowhere);
    assert_int_equal(tr_file_read(scratch_in("arguments"), 4095, &content), TR_OK);
    memcpy(arguments, content.data, content.size);
    arguments[content.size] = '\0';
    tr_file_content_free(&content);
}

static const struct cli_compare_plan plan = {.evaluate_every = 7};

static void the_command_says_what_was_ordered(void **state)
{
    char got[4096], expected[4096], strategy[] = "allreduce", *set[] = {"a=1", "b=2"};
    struct tr_string_list list = {.item = set, .count = 2};
    struct cli_compare_orders orders = {.seed = -1};
    struct cli_compare_case one = {.strategy = strategy, .workers = 1, .ranks = 1, .threads = 3};
    (void)state;
#define ALWAYS "--set=train.checkpoint_every=0\n--set=train.checkpoint_seconds=0\n"
#define HEAD   "train\njob.yaml\n--out=%s/run\n--log=json\n--quiet\n--strategy=allreduce\n"
    run(&orders, &plan, &one, "", "0", got);
    snprintf(expected, sizeof expected, HEAD "--transport=none\n--threads=3\n" ALWAYS, scratch_place);
    assert_string_equal(got, expected);
    orders = (struct cli_compare_orders){.seed = 0, .steps = 12, .set = &list, .until = 0.75};
    one.ranks = 2;
    run(&orders, &plan, &one, "", "0", got);
    snprintf(expected, sizeof expected,
             "launch\n--transport=local\n--processes=2\n--threads=3\n" HEAD
             "--steps=12\n--seed=0\n--set=a=1\n--set=b=2\n" ALWAYS
             "--set=train.until_accuracy=0.75\n--set=train.evaluate_every=7\n--set=train.log_every=7\n",
             scratch_place);
    assert_string_equal(got, expected);
    orders = (struct cli_compare_orders){.seed = -1, .steps = 1, .hosts = "a:1,b:1"};
    run(&orders, &plan, &one, "", "0", got);
    snprintf(expected, sizeof expected,
             "launch\n--hosts=a:1,b:1\n--processes=2\n--threads=3\n" HEAD "--steps=1\n" ALWAYS,
             scratch_place);
    assert_string_equal(got, expected);
}

#define STEP(step, seconds)                                                                                  \
    "{\"event\":\"step\",\"step\":" step ",\"steps\":40,\"loss\":2,\"seconds\":" seconds "}\n"
#define EVALUATION(accuracy, loss, epoch)                                                                    \
    "{\"event\":\"evaluation\",\"accuracy\":" accuracy ",\"loss\":" loss ",\"epoch\":" epoch "}\n"
#define END(statistics)                                                                                      \
    "{\"event\":\"end\",\"step\":40,\"seconds\":10,\"examples_per_second\":80,\"hash\":\"abc\"" statistics   \
    "}\n"

static void figures_are_heard(void **state)
{
    char got[4096], strategy[] = "allreduce";
    const struct cli_compare_orders orders = {.seed = -1, .until = 0.5};
    const struct cli_compare_case one = {.strategy = strategy, .workers = 2, .ranks = 2, .threads = 1};
    (void)state;
    run(&orders, &plan, &one,
        STEP("10", "4") EVALUATION("0.25", "3", "1") STEP("20", "6") EVALUATION("0.5", "2", "2")
            STEP("30", "8") EVALUATION("0.625", "1.5", "3") "no line of JSON\n" END(
                ",\"statistics\":{\"steps\":10,\"ranks\":[{\"bytes_sent\":100,\"bytes_shared\":40,"
                "\"bytes_received\":7,\"wait_seconds\":1,\"compute_seconds\":8},{\"bytes_sent\":300,"
                "\"wait_seconds\":4,\"compute_seconds\":5}]}"),
        "0", got);
    assert_int_equal(result.end, CLI_COMPARE_DONE);
    assert_true(result.accuracy == 0.625 && result.loss == 1.5);
    assert_true(result.target_seconds == 6 && result.target_epochs == 2); /* when it was met first */
    assert_true(result.step == 40 && result.seconds == 10 && result.examples_per_second == 80);
    assert_true(result.steady_examples_per_second == 100); /* 30 steps of 20 examples in 6 seconds */
    assert_string_equal(result.hash, "abc");
    assert_true(result.has_statistics && result.dropped == 0 && !result.refused && !result.failure[0]);
    assert_true(result.statistics.sent == 40 && result.statistics.shared == 4);
    assert_true(result.statistics.computing == 0.65 && result.statistics.waiting == 0.25);
    assert_true(result.statistics.mean_staleness == 0);
    /* Nothing is known without an evaluation, and nothing met. */
    run(&orders, &plan, &one, END(""), "0", got);
    assert_true(isnan(result.accuracy) && isnan(result.loss) && isnan(result.target_seconds));
    assert_true(isnan(result.target_epochs) && !result.has_statistics);
    assert_true(result.steady_examples_per_second == 80);
    /* Nor are statistics without a list of ranks. */
    run(&orders, &plan, &one, END(",\"statistics\":{\"steps\":10}"), "0", got);
    assert_false(result.has_statistics);
    run(&orders, &plan, &one, END(",\"statistics\":{\"steps\":10,\"ranks\":3}"), "0", got);
    assert_false(result.has_statistics);
    assert_int_equal(result.end, CLI_COMPARE_DONE);
}

#define LOOSE(bins)                                                                                          \
    END(",\"statistics\":{\"steps\":10,\"dropped\":3,\"ranks\":[{\"compute_seconds\":8}],\"staleness\":"     \
        "[" bins "]}")

/* Bins of gradients that missed 0, 1, 2, ... updates; where the log of the run is there, it counts. */
static void staleness_is_heard(void **state)
{
    static const char updates[] = "applied 0 0 0\napplied 1 1 0\ndropped 2 0 1\napplied 3 1 2\n";
    char got[4096], path[SCRATCH_PATH], strategy[] = "parameter-server";
    const struct cli_compare_orders orders = {.seed = -1};
    struct cli_compare_case one = {
        .strategy = strategy, .workers = 1, .ranks = 1, .threads = 1, .asynchronous = true};
    struct tr_update_log log = {0};
    struct tr_update_writer writer;
    struct tr_update_figures figures;
    bool found;
    (void)state;
    run(&orders, &plan, &one, LOOSE("4,2,0,2,\"x\""), "0", got);
    assert_true(result.statistics.mean_staleness == 1 && result.statistics.most_staleness == 3);
    assert_true(result.dropped == 3);
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        one.asynchronous = asynchronous;
        assert_int_equal(tr_file_make_directory(NULL, scratch_in("run")), TR_OK);
        scratch_join(path, scratch_in("run"), TR_UPDATE_FILE);
        assert_int_equal(tr_update_text_read("log", updates, sizeof updates - 1, &log), TR_OK);
        tr_update_log_count(&log, &figures);
        assert_true(figures.applied == 3 && figures.dropped == 1);
        assert_int_equal(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found), TR_OK);
        assert_int_equal(tr_update_writer_add(NULL, &writer, &log), TR_OK);
        tr_update_writer_release(&writer);
        tr_update_log_release(&log);
        run(&orders, &plan, &one, LOOSE("4,2,0,2"), "0", got);
        assert_false(tr_file_exists(path)); /* the files of a run do not stay */
        if (!asynchronous) {
            assert_true(result.statistics.mean_staleness == 1 && result.dropped == 3);
            continue;
        }
        assert_true(fabs(result.statistics.mean_staleness - figures.missed / 3) < 1e-12);
        assert_int_equal(result.statistics.most_staleness, figures.most);
        assert_false(result.statistics.more_staleness);
        assert_int_equal(result.dropped, 1);
    }
}

static void runs_end_in_their_ways(void **state)
{
    static const struct {
        const char *code, *error, *failure;
        enum cli_compare_end end;
        bool refused;
    } cases[] = {
        {"0", NULL, "", CLI_COMPARE_DONE, false},
        {"1", NULL, "exit code 1", CLI_COMPARE_FAILED, false},
        {"2", "error: first\nerror: no such file\n", "error: no such file", CLI_COMPARE_FAILED, true},
        {"3", NULL, "exit code 3", CLI_COMPARE_FAILED, false},
        {"4", "not finite", "not finite", CLI_COMPARE_FAILED, false},
        {"5", NULL, "exit code 5", CLI_COMPARE_FAILED, true},
    };
    char got[4096], strategy[] = "allreduce";
    const struct cli_compare_orders orders = {.seed = -1};
    const struct cli_compare_case one = {.strategy = strategy, .workers = 1, .ranks = 1, .threads = 1};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].error)
            setenv("PLAY_ERROR", cases[i].error, 1);
        else
            unsetenv("PLAY_ERROR");
        run(&orders, &plan, &one, "", cases[i].code, got);
        assert_int_equal(result.end, cases[i].end);
        assert_int_equal(result.refused, cases[i].refused);
        assert_string_equal(result.failure, cases[i].failure);
    }
    unsetenv("PLAY_ERROR");
}

/* A run that its budget ended is evaluated where it came to, if it can be. */
static void a_budget_ends_a_run(void **state)
{
    char got[4096], path[SCRATCH_PATH + 32], strategy[] = "allreduce";
    const struct cli_compare_orders orders = {.seed = -1, .budget = 0.01};
    const struct cli_compare_case one = {.strategy = strategy, .workers = 1, .ranks = 1, .threads = 1};
    (void)state;
    for (int known = 0; known < 2; known++) {
        setenv("PLAY_EVAL", known ? "{\"accuracy\":0.5,\"loss\":0.25}\n" : "{\"accuracy\":0.5}\n", 1);
        run(&orders, &plan, &one, EVALUATION("0.125", "4", "1"), "wait", got);
        assert_int_equal(result.end, CLI_COMPARE_OUT_OF_TIME);
        snprintf(path, sizeof path, "\neval\n%s/run\n--json\n", scratch_place);
        assert_non_null(strstr(got, path));
        /* What it said before it was asked may have been heard, or not. */
        if (known) assert_true(result.accuracy == 0.5 && result.loss == 0.25);
        if (!known) assert_true(isnan(result.loss) || result.loss == 4);
    }
}

static void memory_is_refused(void **state)
{
    char strategy[] = "allreduce";
    const struct cli_compare_orders orders = {
        .seed = -1, .set = &no_set, .model = "job.yaml", .directory = scratch_place};
    const struct cli_compare_case one = {.strategy = strategy, .workers = 2, .ranks = 2, .threads = 1};
    FILE *nowhere = fopen("/dev/null", "w");
    (void)state;
    assert_non_null(nowhere);
    play_with(scratch_in("arguments"), END(""), "0");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct cli_screen screen;
        cli_screen_begin(&screen, nowhere);
        refuse_begin(at);
        tr_status status = cli_compare_run(&orders, &plan, &one, &screen, &result);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM); /* what was not heard is told, too */
        cli_screen_end(&screen);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_string_equal(result.hash, "abc");
    fclose(nowhere);
}

static int set_up(void **state)
{
    cli_signals_catch(NULL, "ending");
    return scratch_place_make(state);
}

static int tear_down(void **state)
{
    cli_signals_release();
    return scratch_place_remove(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_says_what_was_ordered),
        cmocka_unit_test(figures_are_heard),
        cmocka_unit_test(staleness_is_heard),
        cmocka_unit_test(runs_end_in_their_ways),
        cmocka_unit_test(a_budget_ends_a_run),
        cmocka_unit_test(memory_is_refused),
    };
    if (is_played(argc)) return play(argv);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
