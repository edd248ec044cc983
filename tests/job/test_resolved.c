/* What a job takes from its data, and keeps in its text, from which it is restored without them.
 */
#include "job/job.h"
#include "job/sets.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "scratch.h"
#include "support/files/npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define REST          "optimizer: {rule: sgd, rate: 1}\ntrain: {batch: 2, steps: 1}\n"
#define DENSE         "layers: [dense: 2]\n" REST
#define NPY(features) "name: n\ndata: {train: {npy: {features: " features ".npy, labels: labels.npy}}}\n"

static const struct {
    const char *text, *kept[3];
} cases[] = {
    {NPY("flat") DENSE, {"shape: [12]", NULL}},
    {NPY("steps") "layers: [last, dense: 2]\n" REST, {"shape: [12]", "steps: 2", NULL}},
    {NPY("bytes") DENSE, {"shape: [2, 3, 2]", NULL}},
    {NPY("floats") DENSE, {"shape: [12]", "image: [2, 3, 2]", NULL}},
    {NPY("wide") DENSE "input: {brightness: 0.5}\n", {"image: [2, 3, 2]", "range: [0, 65535]", NULL}},
    {NPY("signed") DENSE "input: {contrast: 0.5}\n", {"image: [2, 3, 2]", "range: [-32768, 32767]", NULL}},
    {NPY("signed") DENSE "input: {contrast: 0.5, range: [0, 9]}\n", {"range: [0, 9]", NULL}},
    {"name: n\ndata: {train: {csv: named.csv}}\n" DENSE, {"shape: [1]", "classes: [cat, dog]", NULL}},
    {"name: n\ndata: {train: {text: {path: words.tsv}}}\nlayers: [embedding: 2, last, dense: 2]\n" REST,
     {"vocabulary: ", "state: ", NULL}},
    {"name: n\ndata: {train: {join: {sources: {a: {npy: {features: bytes.npy, labels: labels.npy}}, b: {npy: "
     "{features: flat.npy, labels: labels.npy}}}, labels: a}}}\n"
     "layers: [{flatten: {from: a}}, {concat: {with: b}}, {dense: 2}]\n" REST,
     {"sources: [\"a 2x3x2\", \"b 12\"]", "shape: [24]", NULL}},
};

static tr_status open_text(const char *text, struct tr_job **job)
{
    const struct tr_job_settings settings = {.set_count = 0};
    const struct tr_job_text model = {text, strlen(text), "m.yaml", scratch_place};
    *job = NULL;
    return tr_job_open_text(&model, &settings, job);
}

static char *text_of(const struct tr_job *job)
{
    char *text;
    assert_int_equal(tr_job_text(job, &text), TR_OK);
    return text;
}

/* From its text a job comes again as it was. */
static void jobs_keep_what_their_data_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_job_settings settings = {.set_count = 0};
        struct tr_job *job, *again;
        if (open_text(cases[i].text, &job) != TR_OK) fail_msg("case %zu: %s", i, tr_error_message());
        char *text = text_of(job);
        for (int k = 0; cases[i].kept[k]; k++)
            if (!strstr(text, cases[i].kept[k])) fail_msg("no %s in %s", cases[i].kept[k], text);
        assert_int_equal(tr_job_again(job, &settings, &again), TR_OK);
        assert_null(again->source[TR_SET_TRAIN]); /* without its data */
        char *other = text_of(again);
        assert_string_equal(other, text);
        assert_memory_equal(again->digest, job->digest, sizeof job->digest);
        tr_free(other);
        tr_free(text);
        tr_job_destroy(&again);
        tr_job_destroy(&job);
    }
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            struct tr_job *job;
            refuse_begin(at);
            const tr_status status = open_text(cases[i].text, &job);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("case %zu, allocation %d: %s, %s", i, (int)at, tr_status_name(status),
                         status == TR_OK ? "" : tr_error_message());
            tr_job_destroy(&job);
            assert_int_equal(tr_alloc_live(), live);
        }
}

static int set_up(void **state)
{
    const float floats[24] = {1, 2, 3};
    const uint16_t wide[24] = {1, 2, 3};
    const uint8_t bytes[24] = {1, 2, 3}, labels[2] = {0, 1};
    scratch_place_make(state);
    npy_write(scratch_in("flat.npy"), "<f4", "2, 12", floats, sizeof floats);
    npy_write(scratch_in("steps.npy"), "<f4", "2, 2, 6", floats, sizeof floats);
    npy_write(scratch_in("floats.npy"), "<f4", "2, 2, 3, 2", floats, sizeof floats);
    npy_write(scratch_in("bytes.npy"), "|u1", "2, 2, 3, 2", bytes, sizeof bytes);
    npy_write(scratch_in("wide.npy"), "<u2", "2, 2, 3, 2", wide, sizeof wide);
    npy_write(scratch_in("signed.npy"), "<i2", "2, 2, 3, 2", wide, sizeof wide);
    npy_write(scratch_in("labels.npy"), "|u1", "2,", labels, sizeof labels);
    scratch_write_text("named.csv", "1,dog\n2,cat\n");
    scratch_write_text("words.tsv", "one two three\t0\ntwo two\t1\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_keep_what_their_data_say),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.resolved", tests, set_up, scratch_place_remove);
}
