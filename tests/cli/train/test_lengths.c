/* Runs of other lengths than their files and checkpoints say: ones that have ended are left as they are, and
 * shorter ones shrink their warm-up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/session.h"

/* Demands what stdout holds and, where `absent` is given, what it does not. */
static void expect_said(const struct session *session, const char *part, const char *absent)
{
    bool good = strstr(session->text[0], part) && !(absent && strstr(session->text[0], absent));
    if (!good) session_show(session);
    assert_true(good);
}

static int64_t checkpoints_in(const char *run)
{
    struct tr_file_names names;
    int64_t count = 0;
    assert_int_equal(tr_file_list(NULL, run, &names), TR_OK);
    for (int64_t i = 0; i < names.count; i++) count += strncmp(names.name[i], "checkpoint-0", 12) == 0;
    tr_file_names_free(&names);
    return count;
}

static void resume(const char *const *arguments, const char *part, const char *absent)
{
    struct session session;
    session_start(&session, &(struct setup){.arguments = arguments});
    int code = session_end(&session);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    expect_said(&session, part, absent);
    session_release(&session);
}

static void a_finished_run_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const again[] = {"train", "--resume", "done", NULL},
                             *const fewer[] = {"train", "--resume", "done", "--steps", "3", NULL},
                             *const two[] = {"launch", "-n", "2", "train", "--resume", "done", NULL},
                             *const elsewhere[] = {"train", "--resume", "done", "--out", "copy", NULL},
                             *const on[] = {"train", "--resume", "done", "--steps", "5", NULL};
    expect_exit(0, "train", "tiny.yaml", "--out", "done", "--steps", "4");
    resume(again, "nothing is left to do: all 4 steps were done", "saved");
    resume(fewer, "nothing is left to do: 4 steps were done, more than the 3 asked for", "4/3");
    resume(two, "nothing is left to do", "saved");
    assert_int_equal(checkpoints_in("done"), 1);
    /* In another directory there is something to be added, and so there is with more steps. */
    resume(elsewhere, "saved copy/checkpoint-00000004", NULL);
    resume(on, "saved done/checkpoint-00000005", "nothing is left");
    assert_int_equal(checkpoints_in("done"), 2);
}

/* Trains and returns the hash, in static storage; demands a warning, or none, once. */
static const char *train(const char *file, const char *option, const char *value, const char *schedule,
                         bool warns)
{
    struct session session;
    int code = run(&session, "train", file, "--out", "length", option, value, "--overwrite",
                   schedule ? "--set" : NULL, schedule, NULL);
    const char *warning = strstr(session.text[1], "a warm-up of "),
               *second = warning ? strstr(warning + 1, "a warm-up of ") : NULL;
    if (code != 0 || (warning != NULL) != warns || second) session_show(&session);
    assert_int_equal(code, 0);
    assert_int_equal(warning != NULL, warns);
    assert_null(second);
    const char *hash = hash_in(session.text[0]);
    session_release(&session);
    return hash;
}

/* The hash of a shrunk warm-up is that of one that is given so. */
static void expect_warmup(const char *file, const char *option, const char *value, const char *schedule,
                          bool warns)
{
    char shrunk[65];
    snprintf(shrunk, sizeof shrunk, "%s", train(file, option, value, NULL, warns));
    assert_string_equal(train(file, option, value, schedule, false), shrunk);
}

static void a_shorter_run_has_the_same_share_of_warmup(void **state)
{
    (void)state;
    static const char head[] = "name: short\ndata: {train: {idx: {images: images.idx, labels: labels.idx}}}\n"
                               "layers: [{dense: 3}]\nloss: softmax_cross_entropy\n"
                               "optimizer: {rule: sgd, rate: 0.1, schedule: {kind: cosine, warmup: 14}}\n";
    char text[1024];
    snprintf(text, sizeof text, "%strain: {batch: 10, microbatches: 1, steps: 56}\n", head);
    write_text("steps.yaml", text);
    snprintf(text, sizeof text, "%strain: {batch: 10, microbatches: 1, epochs: 8}\n", head); /* of 7 steps */
    write_text("epochs.yaml", text);
    expect_warmup("steps.yaml", "--steps", "12", "optimizer.schedule={kind: cosine, warmup: 3}", true);
    expect_warmup("epochs.yaml", "--steps", "12", "optimizer.schedule={kind: cosine, warmup: 3}", true);
    expect_warmup("steps.yaml", "--epochs", "2", "optimizer.schedule={kind: cosine, warmup: 4}", true);
    expect_warmup("epochs.yaml", "--epochs", "1", "optimizer.schedule={kind: cosine, warmup: 2}", true);
    expect_warmup("steps.yaml", "--steps", "1", "optimizer.schedule=cosine", true);
    /* One that fits stays. */
    expect_warmup("steps.yaml", "--steps", "15", "optimizer.schedule={kind: cosine, warmup: 14}", false);
    /* What a checkpoint keeps is the shrunk one. */
    train("steps.yaml", "--steps", "12", NULL, true);
    static const char *const again[] = {"train", "--resume", "length", NULL};
    resume(again, "nothing is left to do: all 12 steps", "warm-up");
}

static void a_warmup_that_the_file_itself_makes_too_long_is_refused(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "train", "steps.yaml", "--set", "train.steps=12", NULL);
    expect_error(2, "a warm-up of 14 steps leaves nothing of 12 steps", &session, code);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_run_stays_as_it_is),
        cmocka_unit_test(a_shorter_run_has_the_same_share_of_warmup),
        cmocka_unit_test(a_warmup_that_the_file_itself_makes_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
