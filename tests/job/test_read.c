/* What a model file says of the run and of the division of the data: which of it is refused, with what words,
 * before any data are read.
 */
#include "job/job.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SOURCE "train: {csv: {path: none.csv}}"

/* A job with these sections; its data are not there. */
static tr_status open_with(const char *data, const char *train, const char *optimizer, struct tr_job **job)
{
    char text[1024];
    const struct tr_job_settings settings = {.set_count = 0};
    const int length = snprintf(text, sizeof text,
                                "name: n\ndata: {%s}\ntrain: {%s}\noptimizer: {%s}\ninput: {shape: [2]}\n"
                                "layers: [dense: 2]\n",
                                data, train, optimizer);
    const struct tr_job_text model = {text, (size_t)length, "m.yaml", "/nowhere"};
    assert_in_range(length, 1, sizeof text - 1);
    *job = NULL;
    return tr_job_open_text(&model, &settings, job);
}

#define SGD "rule: sgd, rate: 1"

/* The message is the place in the file, in this line, and this; NULL: it is taken. */
static void expect(int line, const char *data, const char *train, const char *optimizer, const char *said)
{
    struct tr_job *job;
    char place[32];
    const int64_t live = tr_alloc_live();
    const tr_status status = open_with(data, train, optimizer, &job);
    if (!said) {
        if (status != TR_OK) fail_msg("{%s} {%s}: %s", data, train, tr_error_message());
        tr_job_destroy(&job);
    } else {
        const char *message = tr_error_message(), *at = strstr(message, said);
        if (status != TR_EINVAL) fail_msg("{%s} {%s} is taken, or %s", data, train, message);
        snprintf(place, sizeof place, "m.yaml:%d:", line);
        if (strncmp(message, place, strlen(place)) != 0 || !at || strcmp(at, said) != 0)
            fail_msg("{%s} {%s}: \"%s\", not \"%s\"", data, train, message, said);
        assert_null(job);
    }
    assert_int_equal(tr_alloc_live(), live);
}

static void runs_have_sense(void **state)
{
    static const char *const cases[][2] = {
        {"batch: 4, steps: 1", NULL},
        {"batch: 4, microbatches: 4, steps: 1", NULL},
        {"batch: 4, microbatches: 5, steps: 1",
         "5 microbatches for a batch of 4 examples; give at most as many as examples"},
        {"batch: 4, steps: 1, pass: 1", NULL},
        {"batch: 4, steps: 1, pass: 4", NULL},
        {"batch: 4, steps: 1, pass: 3", "pass is 3, but must be a power of two"},
        {"batch: 4, steps: 1, pass: 6", "pass is 6, but must be a power of two"},
        {"batch: 4, steps: 1, sampling: shares",
         "sampling: shares needs sampling_shares, one number for each class"},
        {"batch: 4, steps: 1, sampling_shares: [1]",
         "sampling_shares are given, but sampling is not shares; set it"},
        {"batch: 4, steps: 1, sampling: shares, sampling_shares: [1]", NULL},
        {"batch: 4, steps: 1, monitor: loss",
         "monitor: loss is a figure of evaluations during the run; set train.evaluate_every"},
        {"batch: 4", "give steps or epochs"},
        {"batch: 4, steps: 1, epochs: 1",
         "give steps or epochs, not both; `steps` or `epochs` of the settings replaces both"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(3, SOURCE, cases[i][0], SGD, cases[i][1]);
    expect(4, SOURCE, "batch: 4, steps: 9", SGD ", schedule: {kind: plateau, factor: 0.5, patience: 1}",
           "a plateau schedule follows evaluations during the run; set train.evaluate_every");
}

static void data_are_divided_in_one_way(void **state)
{
    static const char *const cases[][2] = {
        {"validation_split: 0.25", NULL},
        {"validation_split: 0.25, split: stratified, split_seed: 0", NULL},
        {"folds: 2", NULL},
        {"folds: 2, fold: 1", NULL},
        {"folds: 2, fold: 2, split: stratified", NULL},
        {"folds: 2, fold: 3", "fold 3 of 2; give 1 to 2"},
        {"folds: 1", "folds: 1 leaves nothing to train on; give 2 or more"},
        {"fold: 1", NULL},
        {"fold: 2", "fold: 2 is one of folds, and there are none; set folds"},
        {"folds: 2, validation_split: 0.25", "there are folds and a validation_split; give one of them"},
        {"folds: 1, validation_split: 0.25", "there are folds and a validation_split; give one of them"},
        {"split: stratified",
         "split: stratified is of a split, and there is none; set validation_split or folds"},
        {"split_seed: 0", "split_seed is of a split, and there is none; set validation_split or folds"},
        {"split_seed: 1, split: stratified",
         "split_seed is of a split, and there is none; set validation_split or folds"},
        {"validation: null, folds: 2", NULL},
        {"validation: {csv: {path: v.csv}}", NULL},
        {"validation: {csv: {path: v.csv}}, folds: 2",
         "there are validation data and a number of folds; give one of them"},
        {"validation: {csv: {path: v.csv}}, folds: 1",
         "there are validation data and a number of folds; give one of them"},
        {"validation: {csv: {path: v.csv}}, validation_split: 0.25",
         "there are validation data and a validation_split; give one of them"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char data[256];
        snprintf(data, sizeof data, SOURCE ", %s", cases[i][0]);
        expect(2, data, "batch: 4, steps: 1", SGD, cases[i][1]);
    }
}

/* The sources of all sets are looked at, though none is opened. */
static void sources_are_known(void **state)
{
    static const char *const sets[] = {"train", "validation", "test"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char data[256];
        struct tr_job *job;
        snprintf(data, sizeof data, "%s%s: {nonsense: {path: x}}", i > 0 ? SOURCE ", " : "", sets[i]);
        assert_int_not_equal(open_with(data, "batch: 4, steps: 1", SGD, &job), TR_OK);
        assert_non_null(strstr(tr_error_message(), "nonsense"));
        assert_null(job);
        snprintf(data, sizeof data, "%s%s: {csv: {pth: x}}", i > 0 ? SOURCE ", " : "", sets[i]);
        assert_int_equal(open_with(data, "batch: 4, steps: 1", SGD, &job), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "did you mean \"path\"?"));
    }
}

/* Epochs need the data, and those are not there; nothing stays behind. */
static void epochs_need_data(void **state)
{
    struct tr_job *job;
    const int64_t live = tr_alloc_live();
    (void)state;
    assert_int_equal(open_with(SOURCE, "batch: 4, epochs: 1", SGD, &job), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "/nowhere/none.csv"));
    assert_int_equal(tr_alloc_live(), live);
}

/* Whichever allocation fails: no job, and nothing stays behind. */
static void lack_of_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_job *job;
        refuse_begin(at);
        const tr_status status = open_with(
            SOURCE ", folds: 2", "batch: 4, steps: 1, sampling: shares, sampling_shares: [1, 2]", SGD, &job);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %d: %s, %s", (int)at, tr_status_name(status), tr_error_message());
        if (done)
            tr_job_destroy(&job);
        else
            assert_null(job);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_have_sense),        cmocka_unit_test(data_are_divided_in_one_way),
        cmocka_unit_test(sources_are_known),      cmocka_unit_test(epochs_need_data),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.read", tests, NULL, NULL);
}
