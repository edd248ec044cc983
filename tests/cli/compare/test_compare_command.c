/* trireme compare in this process, whose runs are this program again, which notes its arguments and says what
 * the test wants: what each option does to the runs, and how the whole ends.
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
#include "cli/play.h"
#include "cli/printed.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/session.h"
#include "refuse.h"

#define END(hash)                                                                                            \
    "{\"event\":\"end\",\"step\":40,\"seconds\":10,\"examples_per_second\":80,\"hash\":\"" hash "\"}\n"
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Runs the command; what it prints, in static storage. The runs say `text` and end with `code`. */
static const char *compare(const char *const *words, const char *text, const char *code, tr_status *status)
{
    void *options;
    int count = 0;
    while (words[count]) count++;
    if (cli_command_read(&cli_compare, count, words, WORDS(NULL), &options) != TR_OK)
        fail_msg("%s", tr_error_message());
    play_with("arguments", text, code);
    printed_begin();
    *status = cli_compare.run(options);
    const char *printed = printed_end();
    cli_command_release(&cli_compare, &options);
    return printed;
}

/* The file of figures; release with json_decref(). */
static json_t *figures(void)
{
    json_t *root = json_load_file("c.json", 0, NULL);
    assert_non_null(root);
    assert_int_equal(remove("c.json"), 0);
    return root;
}

static void options_reach_the_runs(void **state)
{
    tr_status status;
    (void)state;
    const int64_t live = tr_alloc_live();
    compare(WORDS("tiny.yaml", "--workers=2,3", "--strategies=allreduce", "--steps=12", "--seed=5",
                  "--threads=7", "--set=train.batch=9", "-s", "train.microbatches=3", "--until=accuracy=0.75",
                  "--budget=90s", "--json=c.json", "--csv=c.csv"),
            END("abc"), "0", &status);
    assert_int_equal(status, TR_OK);
    assert_int_equal(tr_alloc_live(), live);
    /* The single process is measured again at the end. */
    play_expect("train\ntiny.yaml\n", 4);
    play_expect("launch\n", 2);
    play_expect("--processes=2\n--threads=3\ntrain\n", 1);
    play_expect("--processes=3\n--threads=2\ntrain\n", 1);
    play_expect("--transport=none\n--threads=7\n", 2);
    play_expect("--strategy=allreduce\n", 4);
    play_expect("--steps=12\n--seed=5\n--set=train.batch=9\n--set=train.microbatches=3\n", 4);
    play_expect("--set=train.until_accuracy=0.75\n--set=train.evaluate_every=1\n", 4);
    assert_true(tr_file_exists("c.csv"));
    json_t *root = figures();
    assert_string_equal(json_string_value(json_object_get(root, "model")), "tiny.yaml");
    assert_true(json_number_value(json_object_get(root, "budget_seconds")) == 90);
    assert_true(json_number_value(json_object_get(root, "until_accuracy")) == 0.75);
    assert_int_equal(json_integer_value(json_object_get(root, "threads")), 7);
    const json_t *runs = json_object_get(root, "runs");
    assert_int_equal(json_array_size(runs), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *again = json_object_get(json_array_get(runs, i), "examples_per_second_again");
        assert_true(i == 0 ? json_number_value(again) == 80 : again == NULL);
    }
    json_decref(root);
    /* The directory of the runs is gone. */
    const char *out = strstr(play_arguments(), "--out=");
    char directory[512];
    snprintf(directory, sizeof directory, "%.*s", (int)strcspn(out + 6, "\n"), out + 6);
    assert_string_equal(strrchr(directory, '/'), "/run");
    *strrchr(directory, '/') = '\0';
    assert_false(tr_file_exists(directory));
}

static void without_options_there_are_defaults(void **state)
{
    tr_status status;
    (void)state;
    const int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    char threads[64];
    compare(WORDS("tiny.yaml", "--json=c.json", "--strategies=allreduce"), END("abc"), "0", &status);
    assert_int_equal(status, TR_OK);
    snprintf(threads, sizeof threads, "--transport=none\n--threads=%d\n", processors);
    play_expect(threads, 2);
    play_expect("--processes=", 1);
    play_expect("--processes=2\n", 1);
    play_expect("--steps=", 0);
    play_expect("--seed=", 0);
    play_expect("until_accuracy", 0);
    json_t *root = figures();
    assert_true(json_number_value(json_object_get(root, "budget_seconds")) == 300);
    assert_null(json_object_get(root, "until_accuracy"));
    assert_int_equal(json_integer_value(json_object_get(root, "threads")), processors);
    json_decref(root);
    compare(WORDS("tiny.yaml", "--json=c.json", "--workers=1", "--budget=0", "--seed=0",
                  "--strategies=allreduce"),
            END("abc"), "0", &status);
    assert_int_equal(status, TR_OK);
    play_expect("--seed=0\n", 1); /* a process by itself is not measured again */
    root = figures();
    assert_null(json_object_get(root, "budget_seconds"));
    json_decref(root);
}

static void rounds_repeat_all(void **state)
{
    tr_status status;
    (void)state;
    const char *text = compare(WORDS("tiny.yaml", "--json=c.json", "--workers=2", "--rounds=3",
                                     "--strategies=allreduce", "--threads=2"),
                               END("abc"), "0", &status);
    assert_int_equal(status, TR_OK);
    play_expect("train\ntiny.yaml\n", 6);
    play_expect("launch\n", 3);
    const char *best = strstr(text, "\nthe fastest of each:\n");
    assert_non_null(best);
    int heads = 0, rows = 0, last = 0;
    for (const char *at = text; (at = strstr(at, "\nstrategy ")) != NULL; at++) heads++;
    for (const char *at = text; (at = strstr(at, "\none process ")) != NULL; at++) rows++;
    for (const char *at = best; (at = strstr(at, "\nallreduce ")) != NULL; at++) last++;
    assert_int_equal(heads + (strncmp(text, "strategy ", 9) == 0), 4);
    assert_int_equal(rows, 4);
    assert_int_equal(last, 1);
    json_t *root = figures();
    assert_null(
        json_object_get(json_array_get(json_object_get(root, "runs"), 0), "examples_per_second_again"));
    json_decref(root);
}

/* Of several rounds the fastest run counts, whichever it is. */
static void the_fastest_of_rounds_counts(void **state)
{
    static const int speeds[] = {70, 90};
    char later[256];
    tr_status status;
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(
            later, sizeof later,
            "{\"event\":\"end\",\"step\":40,\"seconds\":10,\"examples_per_second\":%d,\"hash\":\"abc\"}\n",
            speeds[i]);
        setenv("PLAY_LATER", later, 1);
        compare(WORDS("tiny.yaml", "--workers=1", "--strategies=allreduce", "--rounds=2", "--json=c.json"),
                END("abc"), "0", &status);
        unsetenv("PLAY_LATER");
        assert_int_equal(status, TR_OK);
        json_t *root = figures();
        const json_t *one = json_array_get(json_object_get(root, "runs"), 0);
        assert_true(json_number_value(json_object_get(one, "examples_per_second")) == (i == 0 ? 80 : 90));
        json_decref(root);
    }
}

static void other_weights_are_a_failure(void **state)
{
    tr_status status;
    (void)state;
    setenv("PLAY_LAUNCH", END("0123456789"), 1);
    const char *text =
        compare(WORDS("tiny.yaml", "--workers=2", "--strategies=allreduce"), END("abc"), "0", &status);
    unsetenv("PLAY_LAUNCH");
    assert_int_equal(status, TR_EIO);
    assert_string_equal(tr_error_message(), "1 synchronous runs ended with other weights than one process");
    assert_non_null(strstr(text, "NOT EQUAL"));
    /* So are other weights of the same run: in a later round, and where the single process runs again. */
    for (int rounds = 1; rounds <= 2; rounds++) {
        setenv("PLAY_LATER", END("0123456789"), 1);
        text =
            compare(WORDS("tiny.yaml", rounds == 1 ? "--workers=2" : "--workers=1", "--strategies=allreduce",
                          rounds == 1 ? "--rounds=1" : "--rounds=2", "--json=c.json"),
                    END("abc"), "0", &status);
        unsetenv("PLAY_LATER");
        assert_int_equal(status, TR_EIO);
        json_t *root = figures();
        const json_t *one = json_array_get(json_object_get(root, "runs"), 0);
        assert_string_equal(json_string_value(json_object_get(one, "end")), "failed");
        assert_string_equal(json_string_value(json_object_get(one, "reason")),
                            "NOT EQUAL: hash 01234567, in an earlier round it was abc");
        json_decref(root);
    }
    assert_string_equal(tr_error_message(), "1 of the runs failed");
    /* Fewer steps have other weights: a budget may end a run anywhere. */
    setenv("PLAY_LATER", "{\"event\":\"end\",\"step\":39,\"hash\":\"x\",\"examples_per_second\":9}\n", 1);
    compare(WORDS("tiny.yaml", "--workers=1", "--strategies=allreduce", "--rounds=2"), END("abc"), "0",
            &status);
    unsetenv("PLAY_LATER");
    assert_int_equal(status, TR_OK);
}

static void failed_runs_are_counted(void **state)
{
    tr_status status;
    (void)state;
    setenv("PLAY_ERROR", "trireme train: no luck\n", 1);
    compare(WORDS("tiny.yaml", "--workers=2", "--strategies=allreduce"), "", "1", &status);
    assert_int_equal(status, TR_EIO);
    assert_string_equal(tr_error_message(), "2 of the runs failed");
    play_expect("train\ntiny.yaml\n", 3);
    /* What is wrong in itself is not tried again. */
    compare(WORDS("tiny.yaml", "--workers=2", "--strategies=allreduce"), "", "2", &status);
    unsetenv("PLAY_ERROR");
    assert_int_equal(status, TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "one process cannot run the job, so no strategy can: trireme train: no luck");
    play_expect("train\ntiny.yaml\n", 1);
}

static void runs_have_a_place(void **state)
{
    tr_status status;
    (void)state;
    setenv("TMPDIR", "nowhere", 1);
    compare(WORDS("tiny.yaml", "--workers=1"), END("abc"), "0", &status);
    assert_int_equal(status, TR_EIO);
    assert_non_null(strstr(tr_error_message(), "no directory can be made at \"nowhere/trireme-compare-"));
    assert_string_equal(play_arguments(), "");
    assert_int_equal(tr_file_make_directory(NULL, "here"), TR_OK);
    setenv("TMPDIR", "here", 1);
    compare(WORDS("tiny.yaml", "--workers=1", "--strategies=allreduce"), END("abc"), "0", &status);
    assert_int_equal(status, TR_OK);
    play_expect("--out=here/trireme-compare-", 1);
    setenv("TMPDIR", "", 1);
    compare(WORDS("tiny.yaml", "--workers=1", "--strategies=allreduce"), END("abc"), "0", &status);
    unsetenv("TMPDIR");
    assert_int_equal(status, TR_OK);
    play_expect("--out=/tmp/trireme-compare-", 1);
}

/* Without memory a comparison fails, or it prints and writes all of it. */
static void memory_is_refused(void **state)
{
    static const char *const words[] = {"tiny.yaml",   "--workers=1,2", "--strategies=allreduce",
                                        "--threads=2", "--csv=c.csv",   "--json=c.json",
                                        NULL};
    struct tr_file_content whole = {0}, got;
    char printed[4096];
    tr_status status;
    (void)state;
    refuse_begin(INT64_MAX);
    snprintf(printed, sizeof printed, "%s", compare(words, END("abc"), "0", &status));
    /* The last ones: from the single process that runs again on. */
    const int64_t first = INT64_MAX - refuse_left - 100;
    refuse_end();
    assert_int_equal(status, TR_OK);
    assert_int_equal(tr_file_read("c.csv", 4096, &whole), TR_OK);
    for (int64_t at = first, done = 0; !done; at += 2) {
        void *options;
        remove("c.csv");
        remove("c.json");
        assert_int_equal(cli_command_read(&cli_compare, 6, words, WORDS(NULL), &options), TR_OK);
        const int64_t live = tr_alloc_live();
        printed_begin();
        refuse_begin(at);
        status = cli_compare.run(options);
        done = refuse_end();
        const char *text = printed_end();
        assert_int_equal(tr_alloc_live(), live);
        cli_command_release(&cli_compare, &options);
        if (status != TR_OK && (status != TR_ENOMEM || done))
            fail_msg("allocation %d: %s", (int)at, tr_error_message());
        if (status != TR_OK) continue;
        if (strcmp(text, printed) != 0) fail_msg("allocation %d: %s", (int)at, text);
        assert_int_equal(tr_file_read("c.csv", 4096, &got), TR_OK);
        assert_string_equal(got.data, whole.data);
        tr_file_content_free(&got);
        json_t *root = figures();
        const json_t *one = json_array_get(json_object_get(root, "runs"), 0);
        assert_true(json_number_value(json_object_get(one, "examples_per_second_again")) == 80);
        json_decref(root);
    }
    tr_file_content_free(&whole);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_reach_the_runs),      cmocka_unit_test(without_options_there_are_defaults),
        cmocka_unit_test(rounds_repeat_all),           cmocka_unit_test(the_fastest_of_rounds_counts),
        cmocka_unit_test(other_weights_are_a_failure), cmocka_unit_test(failed_runs_are_counted),
        cmocka_unit_test(runs_have_a_place),           cmocka_unit_test(memory_is_refused),
    };
    if (is_played(argc)) return play(argv);
    return cmocka_run_group_tests_name("cli.compare_command", tests, place_make, place_remove);
}
