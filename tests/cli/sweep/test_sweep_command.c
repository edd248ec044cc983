/* trireme sweep in this process, whose runs are this program again, which notes its arguments and fails: what
 * each option does to the runs, and what is refused before them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "cli/play.h"
#include "cli/printed.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/session.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *printed; /* by the last command */

/* Runs the command, in a new directory "sweep" if `out`, whose runs fail; its status. */
static tr_status sweep_of(const char *model, bool out, const char *a, const char *b, const char *c,
                          const char *d)
{
    const char *words[] = {model, a, b, c, d, NULL};
    const char *given[8];
    int count = 0;
    void *options;
    for (int i = 0; i < 5; i++)
        if (words[i]) given[count++] = words[i];
    if (out) given[count++] = "--out=sweep";
    if (out && tr_file_exists("sweep")) assert_int_equal(tr_file_remove(NULL, "sweep"), TR_OK);
    if (cli_command_read(&cli_sweep, count, given, WORDS(NULL), &options) != TR_OK)
        fail_msg("%s", tr_error_message());
    setenv("PLAY_ERROR", "trireme train: no luck\n", 1);
    play_with("arguments", "", "1");
    const int64_t live = tr_alloc_live();
    printed_begin();
    const tr_status status = cli_sweep.run(options);
    printed = printed_end();
    unsetenv("PLAY_ERROR");
    assert_int_equal(tr_alloc_live(), live);
    cli_command_release(&cli_sweep, &options);
    return status;
}

static tr_status sweep(bool out, const char *a, const char *b, const char *c, const char *d)
{
    return sweep_of("tiny.yaml", out, a, b, c, d);
}

/* Fails the test unless all `points` have failed, the first being point-0001. */
static void expect_failed(tr_status status, int points)
{
    char message[128];
    snprintf(message, sizeof message, "%d of %d points failed; the first, point-0001: no luck", points,
             points);
    assert_int_equal(status, TR_EIO);
    assert_string_equal(tr_error_message(), message);
    play_expect("train\ntiny.yaml\n", points);
}

static void options_reach_the_runs(void **state)
{
    (void)state;
    expect_failed(sweep(true, "--set=optimizer.rate=0.1,0.2", "--seeds=2", "--seed=5", "--threads=7"), 4);
    play_expect("--threads=7\n", 4);
    play_expect("--seed=5\n--set=optimizer.rate=0.1\n", 1);
    play_expect("--seed=6\n--set=optimizer.rate=0.2\n", 1);
    expect_failed(sweep(true, "--set=train.batch=9", "--folds=3", "--workers=2", "--threads=7"), 3);
    play_expect("--threads=3\n", 3);
    play_expect("--seed=", 0);
    play_expect("--set=train.batch=9\n--set=data.validation_split=0\n--set=data.folds=3\n--set=data.fold=",
                3);
    play_expect("--set=data.fold=3\n", 1);
    expect_failed(sweep(true, "--set=optimizer.rate=1e-3..1e-1", "--random=3", "--workers=4", "--threads=4"),
                  3);
    play_expect("--set=optimizer.rate=0.0", 3);
    play_expect("--threads=1\n", 3);
    /* Several runs at a time have one thread at least. */
    expect_failed(sweep(true, "--workers=5", "--threads=4", NULL, NULL), 1);
    play_expect("--threads=1\n", 1);
    play_expect("--out=sweep/point-0001\n", 1);
}

static void without_options_there_are_defaults(void **state)
{
    char threads[64];
    (void)state;
    snprintf(threads, sizeof threads, "--threads=%d\n", (int)sysconf(_SC_NPROCESSORS_ONLN));
    expect_failed(sweep(false, NULL, NULL, NULL, NULL), 1);
    play_expect(threads, 1);
    play_expect("--seed=", 0);
    play_expect("--set=", 0);
    play_expect("--out=runs/tiny-sweep/point-0001\n", 1);
    /* The job's name is that of all points. */
    expect_failed(sweep(false, "--set=name=other", "--set=optimizer.rate=0.1,0.2", NULL, NULL), 2);
    play_expect("--out=runs/other-sweep/point-0002\n", 1);
}

/* Where nothing is finished there is a table and no page; the figure that judges has its column. */
static void files_tell_of_failures(void **state)
{
    struct tr_file_content content;
    (void)state;
    expect_failed(sweep(true, "--by=macro_f1", "--set=seed=3,4", NULL, NULL), 2);
    assert_false(tr_file_exists("sweep/report.html"));
    assert_int_equal(tr_file_read("sweep/sweep.csv", 4096, &content), TR_OK);
    assert_string_equal(content.data, "point,seed,seed,loss,accuracy,f1,set,seconds,step,hash,state,failure\n"
                                      "point-0001,3,,,,,,,0,,failed,no luck\n"
                                      "point-0002,4,,,,,,,0,,failed,no luck\n");
    tr_file_content_free(&content);
    json_t *record = json_load_file("sweep/sweep.json", 0, NULL);
    assert_int_equal(json_array_size(json_object_get(record, "points")), 2);
    assert_int_equal(strlen(json_string_value(json_object_get(record, "model_digest"))), 64);
    json_decref(record);
}

static void others_are_refused_before_the_runs(void **state)
{
    static const struct {
        const char *word, *other, *part;
    } cases[] = {
        {"--folds=1", NULL, "--folds 1 leaves nothing to train on; give 2 or more"},
        {"--rate-test", "--seeds=2", "--rate-test is one run"},
        {"--rate-test", "--folds=2", "--rate-test is one run"},
        {"--rate-test", "--set=optimizer.rate=0.1,0.2", "--rate-test is one run"},
        {"--set=optimizer.rat=0.1,0.2", NULL, "did you mean \"rate\"?"},
        {"--set=data.folds=2", "--set=data.fold=3", "fold"},
        {"--random=2", NULL, "--random draws from values"},
        {"--by=f2", NULL, "did you mean \"f1\"?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tr_status status = sweep(true, cases[i].word, cases[i].other, NULL, NULL);
        if (status == TR_OK || !strstr(tr_error_message(), cases[i].part))
            fail_msg("%s: %d, %s", cases[i].word, (int)status, tr_error_message());
        assert_string_equal(play_arguments(), "");
        assert_false(tr_file_exists("sweep"));
    }
    /* Of several values one that can be is enough; the others fail as runs. */
    expect_failed(sweep(true, "--set=optimizer.rule=adm,adam", NULL, NULL, NULL), 2);
    /* Two sweeps do not share a directory. */
    int lock;
    assert_int_equal(tr_file_make_directories(NULL, "runs/tiny-sweep"), TR_OK);
    assert_int_equal(tr_file_lock("runs/tiny-sweep", &lock), TR_OK);
    assert_int_not_equal(sweep(false, NULL, NULL, NULL, NULL), TR_OK);
    assert_string_equal(play_arguments(), "");
    if (lock >= 0) close(lock);
    expect_failed(sweep(false, NULL, NULL, NULL, NULL), 1);
}

/* The table of a test of the rate that is made with this setting or option, in a file that is removed. */
static char *rates_with(const char *word, const char *other)
{
    struct tr_file_content content;
    if (sweep(true, "--rate-test", "--threads=1", word, other) != TR_OK) fail_msg("%s", tr_error_message());
    assert_string_equal(play_arguments(), ""); /* it is a run of this process */
    assert_int_equal(tr_file_read("sweep/rate-test.csv", 1 << 20, &content), TR_OK);
    assert_true(tr_file_exists("sweep/rate-test.html"));
    return content.data;
}

static void rates_are_tested_with_seed_and_settings(void **state)
{
    char *usual = rates_with(NULL, NULL), *seed = rates_with("--seed=3", NULL),
         *none = rates_with("--seed=0", NULL);
    char *setting = rates_with("--set=seed=3", NULL), *both = rates_with("--set=seed=3", "--seed=0");
    (void)state;
    assert_string_equal(seed, setting);
    assert_string_equal(none, both); /* the option has the last word */
    assert_string_not_equal(seed, usual);
    assert_string_not_equal(none, usual);
    char *const all[] = {usual, seed, none, setting, both};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tr_free(all[i]);
}

/* A loss that falls at no rate proposes none, and one that is never finite has no table. */
static void some_jobs_have_no_rate(void **state)
{
    struct tr_file_content content;
    (void)state;
    write_text("line.csv", "0,0,0\n0,0,0\n0,0,0\n");
    write_text("line.yaml",
               "name: line\ndata: {train: {csv: {path: line.csv, label: value}}}\nlayers: [{dense: 1}]\n"
               "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 3, steps: 2}\n");
    assert_int_equal(sweep_of("line.yaml", true, "--rate-test", "--threads=1", NULL, NULL), TR_OK);
    assert_non_null(strstr(printed, "\nrate        none: the loss falls at no rate; check the data"));
    assert_int_equal(tr_file_read("sweep/rate-test.html", 1 << 20, &content), TR_OK);
    assert_null(strstr(content.data, "proposed"));
    assert_null(strstr(content.data, "falls fastest"));
    tr_file_content_free(&content);
    assert_int_equal(tr_file_read("sweep/rate-test.csv", 1 << 20, &content), TR_OK);
    assert_non_null(strstr(content.data, "\n100,10,0,0\n"));
    tr_file_content_free(&content);
    write_text("line.csv", "1,2,1e30\n2,1,1e30\n3,3,1e30\n");
    assert_int_equal(sweep_of("line.yaml", true, "--rate-test", "--threads=1", NULL, NULL), TR_ENONFINITE);
    assert_string_equal(tr_error_message(), "the loss is not finite after 0 steps with rates below 1e-06; "
                                            "check the data and the initial values");
    assert_false(tr_file_exists("sweep/rate-test.csv"));
}

static void numbers_have_limits(void **state)
{
    static const char *const good[] = {"--seeds=1000", "--seed=-1", "--random=10000", "--workers=256",
                                       "--folds=1000", "--seeds=1", "--random=0",     "--workers=1"},
                             *const bad[] = {"--seeds=0",     "--seeds=1001",   "--seed=-2",
                                             "--random=-1",   "--random=10001", "--workers=0",
                                             "--workers=257", "--folds=-1",     "--folds=1001"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]; i++) {
        const bool is_good = i < sizeof good / sizeof good[0];
        const char *word = is_good ? good[i] : bad[i - sizeof good / sizeof good[0]];
        void *options;
        const tr_status status =
            cli_command_read(&cli_sweep, 2, WORDS("tiny.yaml", word), WORDS(NULL), &options);
        if ((status == TR_OK) != is_good) fail_msg("%s: %d", word, (int)status);
        cli_command_release(&cli_sweep, &options);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_reach_the_runs),
        cmocka_unit_test(without_options_there_are_defaults),
        cmocka_unit_test(files_tell_of_failures),
        cmocka_unit_test(others_are_refused_before_the_runs),
        cmocka_unit_test(rates_are_tested_with_seed_and_settings),
        cmocka_unit_test(some_jobs_have_no_rate),
        cmocka_unit_test(numbers_have_limits),
    };
    if (is_played(argc)) return play(argv);
    return cmocka_run_group_tests_name("cli.sweep_command", tests, place_make, place_remove);
}
