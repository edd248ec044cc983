/* Where a run lies: by the name of its job, by the checkpoint that it goes on from, or under the next free
 * number; and whether it can lie there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "cli/session.h"
#include "cli/train/run_directory.h"
#include "cli/train/train.h"
#include "refuse.h"

static struct tr_string_list none;

static void expect_directory(const char *model, const char *name, const char *resume, const char *expected)
{
    char setting[100], *items[] = {setting}, *directory;
    struct tr_string_list set = {.count = 1, .item = items};
    snprintf(setting, sizeof setting, "name=\"%s\"", name ? name : "");
    const int64_t live = tr_alloc_live();
    if (cli_run_directory(model, name ? &set : &none, resume, &directory) != TR_OK)
        fail_msg("%s", tr_error_message());
    assert_string_equal(directory, expected);
    tr_free(directory);
    assert_int_equal(tr_alloc_live(), live);
}

static void names_become_directories(void **state)
{
    (void)state;
    expect_directory("tiny.yaml", NULL, NULL, "runs/tiny");
    expect_directory("tiny.yaml", "other", NULL, "runs/other");
    expect_directory("tiny.yaml", "a-b_c+d=e.f,g@h9Z", NULL, "runs/a-b_c+d=e.f,g@h9Z");
    expect_directory("tiny.yaml", "a b/../c:d", NULL, "runs/a-b-..-c-d");
    expect_directory("tiny.yaml", "..", NULL, "runs/-.");
    expect_directory("tiny.yaml", ".hidden", NULL, "runs/-hidden");
    char *directory;
    write_text("nameless.yaml", "seed: 1\n");
    assert_int_equal(cli_run_directory("nameless.yaml", &none, NULL, &directory), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "nameless.yaml"));
    assert_non_null(strstr(tr_error_message(), "the job has no name; write `name: ...` into the file"));
    write_text("empty.yaml", "name: \"\"\n");
    assert_int_equal(cli_run_directory("empty.yaml", &none, NULL, &directory), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "empty.yaml:1:"));
    assert_int_equal(cli_run_directory("missing.yaml", &none, NULL, &directory), TR_ENOTFOUND);
    char wrong[] = "name.of=x", *items[] = {wrong};
    const struct tr_string_list set = {.count = 1, .item = items};
    assert_int_equal(cli_run_directory("tiny.yaml", &set, NULL, &directory), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "`set` name.of: "));
}

/* A checkpoint lies in the directory of its run. */
static void resumed_runs_stay_where_they_are(void **state)
{
    (void)state;
    assert_int_equal(mkdir("old", 0700) | mkdir("old/checkpoint-00000001", 0700), 0);
    expect_directory("tiny.yaml", NULL, "old", "old");
    write_text("old/checkpoint-00000001/manifest.json", "{}");
    expect_directory("tiny.yaml", NULL, "old/checkpoint-00000001", "old");
    expect_directory("tiny.yaml", NULL, "nowhere", "nowhere");
}

static void expect_new(const char *expected)
{
    char *directory;
    if (cli_run_directory_new("tiny.yaml", &none, NULL, &directory) != TR_OK)
        fail_msg("%s", tr_error_message());
    assert_string_equal(directory, expected);
    assert_true(tr_file_is_directory(directory));
    tr_free(directory);
}

static void numbers_go_on(void **state)
{
    (void)state;
    expect_new("runs/tiny-1");
    expect_new("runs/tiny-2");
    /* After the highest one, whatever it is; others have no part in it. */
    assert_int_equal(mkdir("runs/tiny-7", 0700) | mkdir("runs/tiny-x9", 0700) | mkdir("runs/tiny-8x", 0700),
                     0);
    assert_int_equal(mkdir("runs/tinyer-50", 0700) | mkdir("runs/tiny", 0700) | mkdir("runs/other-60", 0700),
                     0);
    assert_int_equal(mkdir("runs/tiny--5", 0700) | mkdir("runs/tiny9", 0700), 0);
    /* There is none after the largest number. */
    assert_int_equal(mkdir("runs/tiny-9223372036854775807", 0700), 0);
    write_text("runs/tiny-10", "a file has it, too");
    expect_new("runs/tiny-11");
    cli_run_directory_drop("runs/tiny-11");
    assert_false(tr_file_exists("runs/tiny-11"));
    assert_true(tr_file_exists("runs")); /* others are there */
    expect_new("runs/tiny-11");
    write_text("runs/tiny-11/kept", "");
    cli_run_directory_drop("runs/tiny-11");
    assert_true(tr_file_exists("runs/tiny-11"));
    for (int64_t at = 0, done = 0; !done; at++) {
        char *directory = NULL;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = cli_run_directory_new("tiny.yaml", &none, NULL, &directory);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(directory);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void expect_not_writable(const char *directory, const char *part)
{
    const int64_t live = tr_alloc_live();
    assert_int_equal(cli_run_check_writable(directory), TR_EINVAL);
    if (!strstr(tr_error_message(), part)) fail_msg("%s: %s", directory, tr_error_message());
    assert_int_equal(tr_alloc_live(), live);
}

static void what_cannot_be_written_is_found_first(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    assert_int_equal(cli_run_check_writable("."), TR_OK);
    assert_int_equal(cli_run_check_writable("none/of/these"), TR_OK);
    assert_false(tr_file_exists("none"));
    expect_not_writable("tiny.yaml",
                        "the output directory tiny.yaml: tiny.yaml is not a directory; choose another");
    expect_not_writable("tiny.yaml/below",
                        "the output directory tiny.yaml/below: tiny.yaml is not a directory");
    expect_not_writable("/proc/1/x", "nothing can be written to the output directory /proc/1/x: ");
    assert_int_equal(tr_alloc_live(), live);
    /* A directory that has checkpoints is in use. */
    assert_int_equal(cli_run_check_unused("none"), TR_OK);
    assert_int_equal(cli_run_check_unused("."), TR_OK);
    expect_exit(0, "train", "tiny.yaml", "--out", "used it", "--steps", "3", "--quiet");
    assert_int_equal(cli_run_check_unused("used it"), TR_EINVAL);
    assert_string_equal(
        tr_error_message(),
        "used it has checkpoints of an earlier run, up to step 3; --resume 'used it' goes on from there, "
        "--out DIR writes elsewhere, --overwrite removes them and begins anew");
}

/* What `trireme train` makes of its options: a replay lies beside the run that it repeats. */
static void options_have_directories(void **state)
{
    static const struct {
        char *out, *replay, *resume, *transport;
        const char *expected; /* or a part of the message */
        bool fails;
    } cases[] = {
        {NULL, NULL, NULL, NULL, "runs/tiny", false},
        {"x/y", NULL, NULL, NULL, "x/y", false},
        {NULL, "first", NULL, NULL, "first-replay", false},
        {NULL, "first/", NULL, NULL, "first-replay", false},
        {NULL, "first//", NULL, NULL, "first-replay", false},
        {NULL, "f/", NULL, NULL, "f-replay", false},
        {NULL, "first/updates.log", NULL, NULL, "first-replay", false},
        {"x/y", "first", NULL, NULL, "x/y", false},
        {NULL, NULL, "old", NULL, "old", false},
        {"auto", NULL, NULL, "mpi", "--out auto: processes that mpirun or SLURM starts would each choose",
         true},
        {"used", NULL, NULL, NULL, "used has checkpoints of an earlier run, up to step 3; ", true},
    };
    (void)state;
    assert_int_equal(mkdir("first", 0700) | mkdir("f", 0700) | mkdir("used", 0700) |
                         mkdir("used/checkpoint-00000003", 0700),
                     0);
    write_text("first/updates.log", "");
    write_text("used/checkpoint-00000003/manifest.json", "{}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char model[] = "tiny.yaml", *directory = NULL;
        const struct cli_train_options options = {.model = model,
                                                  .out = cases[i].out,
                                                  .replay = cases[i].replay,
                                                  .resume = cases[i].resume,
                                                  .transport = cases[i].transport};
        const int64_t live = tr_alloc_live();
        const tr_status status = cli_train_directory(&options, true, &directory);
        if ((status != TR_OK) != cases[i].fails) fail_msg("case %zu: %s", i, tr_error_message());
        if (!cases[i].fails && strcmp(directory, cases[i].expected) != 0)
            fail_msg("case %zu: %s", i, directory);
        if (cases[i].fails && !strstr(tr_error_message(), cases[i].expected))
            fail_msg("case %zu: %s", i, tr_error_message());
        tr_free(directory);
        assert_int_equal(tr_alloc_live(), live);
        for (int64_t at = 0, done = 0; !done; at++) {
            refuse_begin(at);
            const tr_status refused = cli_train_directory(&options, true, &directory);
            done = refuse_end();
            assert_int_equal(refused, done ? status : TR_ENOMEM);
            tr_free(directory);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
    /* What is there is no matter to a run that overwrites it. */
    struct cli_train_options options = {.out = cases[10].out, .overwrite = true};
    char *directory;
    assert_int_equal(cli_train_directory(&options, false, &directory), TR_OK);
    tr_free(directory);
    /* One process, or those that say so, may choose a number. */
    char model[] = "tiny.yaml", automatic[] = "auto", single[] = "none";
    for (int given = 0; given < 2; given++) {
        options =
            (struct cli_train_options){.model = model, .out = automatic, .transport = given ? single : NULL};
        assert_int_equal(cli_train_directory(&options, false, &directory), TR_OK);
        assert_int_equal(strncmp(directory, "runs/tiny-", 10), 0);
        assert_true(tr_file_is_directory(directory));
        tr_free(directory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_directories),
        cmocka_unit_test(resumed_runs_stay_where_they_are),
        cmocka_unit_test(numbers_go_on),
        cmocka_unit_test(what_cannot_be_written_is_found_first),
        cmocka_unit_test(options_have_directories),
    };
    return cmocka_run_group_tests_name("cli.run_directory", tests, place_make, place_remove);
}
