/* Which networks may teach another: those with the same input, classes and data, whatever changes their
 * examples in training; and what a job that is taught keeps of its teacher.
 */
#include "job/teacher.h"

#include "base/alloc.h"
#include "refuse.h"
#include "support/files/npy.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "train_text.h"

#define REST      "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 4, steps: 1}\n"
#define DENSE     "layers: [dense: 2]\n"
#define CSV(more) "data: {train: {csv: {path: points.csv" more "}}}\n"
#define IMAGES    "data: {train: {npy: {features: images.npy, labels: labels.npy}}}\n"
#define NUMBERS   "data: {train: {npy: {features: numbers.npy, labels: labels.npy}}}\n"
#define PAIRS     "data: {train: {npy: {features: flat.npy, labels: pairs.npy}}}\n"
#define FLAT      "data: {train: {npy: {features: flat.npy, labels: labels.npy}}}\n"
#define JOINED                                                                                               \
    "data: {train: {join: {sources: {a: {npy: {features: flat.npy, labels: labels.npy}}, "                   \
    "b: {npy: {features: flat.npy, labels: labels.npy}}}, labels: a}}}\n"                                    \
    "layers: [{concat: {from: [a, b]}}, {dense: 2}]\n"

static int set_up(void **state)
{
    uint8_t images[8 * 16];
    const uint8_t labels[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    float numbers[8 * 16], pairs[16] = {0};
    scratch_place_make(state);
    for (int i = 0; i < 8 * 16; i++) images[i] = (uint8_t)i, numbers[i] = (float)i / 128;
    npy_write(scratch_in("images.npy"), "|u1", "8, 4, 4, 1", images, sizeof images);
    npy_write(scratch_in("numbers.npy"), "<f4", "8, 4, 4, 1", numbers, sizeof numbers);
    npy_write(scratch_in("flat.npy"), "<f4", "8, 3", numbers, 24 * sizeof *numbers);
    npy_write(scratch_in("pairs.npy"), "<f4", "8, 2", pairs, sizeof pairs);
    npy_write(scratch_in("labels.npy"), "|u1", "8,", labels, sizeof labels);
    scratch_write_text("points.csv", "1,2,0\n2,5,1\n3,1,0\n4,7,1\n5,2,0\n6,1,1\n7,7,0\n8,3,1\n");
    train_text("points", "name: t\n" CSV("") DENSE REST);
    train_text("standard", "name: t\n" CSV(", standardize: true") DENSE REST);
    train_text("images", "name: t\n" IMAGES DENSE REST);
    train_text("bright", "name: t\n" IMAGES "input: {scale: 1/128}\n" DENSE REST);
    train_text("numbers", "name: t\n" NUMBERS DENSE REST);
    train_text("flat", "name: t\n" FLAT DENSE REST);
    train_text("pairs", "name: t\n" PAIRS DENSE "loss: mean_squared_error\n" REST);
    train_text("joined", "name: t\n" JOINED REST);
    train_text("adapted", "name: t\n" FLAT DENSE "adapters: {rank: 1, base: flat}\n" REST);
    return 0;
}

/* A job of this text that `teacher` teaches. */
static tr_status open_taught(const char *text, const char *teacher, struct tr_job **job)
{
    char whole[1024];
    const struct tr_job_settings settings = {.teacher = scratch_in(teacher)};
    const int length = snprintf(whole, sizeof whole, "name: n\n%s" REST, text);
    const struct tr_job_text model = {whole, (size_t)length, "m.yaml", scratch_place};
    *job = NULL;
    return tr_job_open_text(&model, &settings, job);
}

static void teachers_have_the_same_input_and_classes(void **state)
{
    static const struct {
        const char *text, *teacher, *said; /* NULL: it teaches */
    } cases[] = {
        {CSV("") DENSE, "points", NULL},
        {CSV(", standardize: true") DENSE, "standard", NULL},
        {CSV(", standardize: true") DENSE, "points", "other means, names or vocabularies"},
        {CSV("") DENSE, "standard", "other means, names or vocabularies"},
        {CSV("") "layers: [dense: 3]\n", "points", "answers with 2, the network with 3; both"},
        {FLAT DENSE, "points", "takes 2, the network 3"},
        {FLAT DENSE, "flat", NULL},
        {FLAT DENSE, "pairs", "answers with 2 that are no scores of classes, the network with 2; both"},
        {FLAT DENSE, "adapted", "has adapters; merge them into it"},
        {FLAT DENSE, "joined", "networks with several inputs have no teacher"},
        {JOINED, "flat", "networks with several inputs have no teacher"},
        {PAIRS DENSE "loss: mean_squared_error\n", "flat", "distill is for networks with the loss"},
        {IMAGES DENSE, "images", NULL},
        {IMAGES DENSE, "bright", "has another input than the network: "},
        {IMAGES DENSE "input: {scale: 1/128}\n", "bright", NULL},
        {IMAGES DENSE "input: {shift: 1}\n", "images", "has another input than the network: "},
        /* What changes examples in training does not count: the teacher sees them changed, too. */
        {IMAGES DENSE "input: {pad: 1, flip: true}\n", "images", NULL},
        {IMAGES DENSE "input: {rotate: 5, zoom: [0.9, 1.1], erase: 0.5, mixup: 1}\n", "images", NULL},
        {NUMBERS DENSE "input: {contrast: 0.1, range: [0, 1]}\n", "numbers", NULL},
        {IMAGES DENSE "input: {classes: [no, yes]}\n", "images", NULL},
        {IMAGES "layers: [{conv: {filters: 2, kernel: 1}}]\n", "images", "answers with 2, the network with"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t live = tr_alloc_live();
        struct tr_job *job;
        const tr_status status = open_taught(cases[i].text, cases[i].teacher, &job);
        if (!cases[i].said) {
            if (status != TR_OK) fail_msg("case %zu: %s", i, tr_error_message());
            const char *run = scratch_in(cases[i].teacher), *kept = job->distill.teacher;
            assert_true(strncmp(kept, run, strlen(run)) == 0);
            assert_string_equal(kept + strlen(run), "/checkpoint-00000001");
            assert_int_equal(strlen(job->distill.teacher_hash), 64);
            tr_job_destroy(&job);
        } else {
            if (status == TR_OK) fail_msg("case %zu: it teaches", i);
            if (!strstr(tr_error_message(), cases[i].said)) fail_msg("case %zu: %s", i, tr_error_message());
            assert_null(job);
        }
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* The hash that a job keeps is that of the numbers which teach; another one is refused. */
static void a_teacher_is_known_by_its_hash(void **state)
{
    struct tr_job *job;
    struct tr_teacher teacher;
    char hex[TR_SHA256_TEXT];
    (void)state;
    must_train(open_taught(FLAT DENSE, "flat", &job));
    must_train(tr_teacher_open(job, &teacher));
    must_train(tr_model_hash(teacher.job->model, teacher.values, hex));
    assert_string_equal(hex, teacher.hash);
    assert_string_equal(hex, job->distill.teacher_hash);
    tr_teacher_release(&teacher);
    job->distill.teacher_hash[0] ^= 1;
    assert_int_equal(tr_teacher_open(job, &teacher), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "give the one that it began with by distill.teacher"));
    tr_teacher_release(&teacher);
    tr_job_destroy(&job);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_job *job;
        refuse_begin(at);
        const tr_status status = open_taught(FLAT DENSE, "flat", &job);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %d: %s, %s", (int)at, tr_status_name(status), tr_error_message());
        tr_job_destroy(&job);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(teachers_have_the_same_input_and_classes),
        cmocka_unit_test(a_teacher_is_known_by_its_hash),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.teacher", tests, set_up, scratch_place_remove);
}
