/* Adapters and their base: which runs may be one, which of its numbers are taken, and that a run knows it by
 * its hash, whether the base is apart from what is learned or with it.
 */
#include "job/base.h"

#include "base/alloc.h"
#include "nn/base_numbers.h"
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

#define DATA    "data: {train: {npy: {features: flat.npy, labels: labels.npy}}}\n"
#define REST    "train: {batch: 4, steps: 2}\n"
#define SGD     "optimizer: {rule: sgd, rate: 0.1}\n"
#define LAYERS  "layers: [{dense: {units: 4, name: a}}, {dense: {units: 2, name: b}}]\n"
#define ADAPTED "adapters: {rank: 1, on: [a], train: [b]}\n"

static int set_up(void **state)
{
    const uint8_t labels[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    float numbers[24];
    scratch_place_make(state);
    for (int i = 0; i < 24; i++) numbers[i] = (float)i / 16;
    npy_write(scratch_in("flat.npy"), "<f4", "8, 3", numbers, sizeof numbers);
    npy_write(scratch_in("labels.npy"), "|u1", "8,", labels, sizeof labels);
    train_text("plain", "name: n\n" DATA LAYERS SGD REST);
    train_text("averaged", "name: n\n" DATA LAYERS "optimizer: {rule: sgd, rate: 0.1, ema: 0.5}\n" REST);
    train_text("wider", "name: n\n" DATA
                        "layers: [{dense: {units: 5, name: a}}, {dense: {units: 2, name: b}}]\n" SGD REST);
    train_text("other", "name: n\n" DATA "layers: [{dense: {units: 4, name: c}}, {dense: 2}]\n" SGD REST);
    return 0;
}

/* A job with this section, begun with a run or NULL. */
static tr_status open_job(const char *section, const char *base, bool whole, struct tr_job **job)
{
    char text[1024];
    const struct tr_job_settings settings = {.base = base ? scratch_in(base) : NULL, .whole = whole};
    const int length = snprintf(text, sizeof text, "name: n\n" DATA LAYERS SGD REST "%s", section);
    const struct tr_job_text model = {text, (size_t)length, "m.yaml", scratch_place};
    *job = NULL;
    return tr_job_open_text(&model, &settings, job);
}

static struct tr_job *good(const char *section, const char *base, bool whole)
{
    struct tr_job *job;
    if (open_job(section, base, whole, &job) != TR_OK) fail_msg("%s", tr_error_message());
    return job;
}

/* The parameters or averages of a run, as a file of tensors has them; free with tr_free(). */
static float *stored(const char *run, enum tr_checkpoint_group group, const char *name, int64_t count)
{
    tr_checkpoint *checkpoint;
    float *values = tr_alloc((size_t)count, sizeof *values);
    assert_non_null(values);
    must_train(tr_checkpoint_open(scratch_in(run), &checkpoint));
    const struct tr_safetensors_entry *entry =
        tr_safetensors_find(tr_checkpoint_tensors(checkpoint, group), name);
    assert_non_null(entry);
    assert_int_equal(entry->bytes, count * (int64_t)sizeof *values);
    must_train(tr_checkpoint_read(checkpoint, group, entry, values));
    tr_checkpoint_close(&checkpoint);
    return values;
}

/* Where the run has averages, they are the base. Only what is not trained is of it. */
static void the_base_is_what_the_run_evaluates(void **state)
{
    static const struct {
        const char *run, *name;
        enum tr_checkpoint_group group;
    } cases[] = {{"plain", "a.weights", TR_CHECKPOINT_PARAMETERS},
                 {"averaged", "ema.a.weights", TR_CHECKPOINT_OPTIMIZER}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float *wanted = stored(cases[i].run, cases[i].group, cases[i].name, 12);
        struct tr_job *job = good(ADAPTED, cases[i].run, false);
        const struct tr_model *model = job->model;
        assert_int_equal(model->base_count, 2);
        assert_string_equal(model->base[0].name, "a.weights");
        assert_string_equal(model->base[1].name, "a.bias");
        assert_memory_equal(tr_base_numbers_host(model)[0], wanted, 12 * sizeof *wanted);
        assert_string_equal(job->adapters.base_hash, model->base_hash);
        assert_int_equal(strlen(model->base_hash), 64);
        /* With the base among the parameters it has the same numbers, and the same hash. */
        struct tr_job *whole = good(ADAPTED, cases[i].run, true);
        float *arena = tr_alloc_zero((size_t)whole->model->arena_floats, sizeof *arena);
        assert_non_null(arena);
        assert_int_equal(whole->model->base_count, 0);
        must_train(tr_job_load_base(whole, arena));
        int found = 0;
        for (int k = 0; k < whole->model->parameter_count; k++) {
            const struct tr_parameter *parameter = &whole->model->parameters[k];
            bool any = false;
            for (int64_t n = 0; n < parameter->count; n++) any |= arena[parameter->offset + n] != 0;
            assert_true(!any || parameter->base); /* what is learned is not touched */
            if (strcmp(parameter->name, "a.weights") != 0) continue;
            assert_memory_equal(arena + parameter->offset, wanted, 12 * sizeof *wanted);
            found++;
        }
        assert_int_equal(found, 1);
        whole->adapters.base_hash = tr_strdup(model->base_hash);
        must_train(tr_job_load_base(whole, arena));
        whole->adapters.base_hash[63] ^= 1;
        assert_int_equal(tr_job_load_base(whole, arena), TR_EMISMATCH);
        assert_non_null(strstr(tr_error_message(), "give the one that it began with by adapters.base"));
        tr_free(arena);
        tr_free(wanted);
        tr_job_destroy(&whole);
        tr_job_destroy(&job);
    }
}

static void other_runs_are_refused(void **state)
{
    static const struct {
        const char *section, *base, *said;
    } cases[] = {
        {ADAPTED, NULL, "the network has adapters but no base; name the run with the trained network as"},
        {ADAPTED, "other", "of the adapters has no \"a.weights\" "},
        {ADAPTED, "wider", "in the base \""},
        {ADAPTED, "nowhere", "adapters.base: "},
        {"adapters: {rank: 1, on: [a], train: [b], base: other}\n", NULL, "has no \"a.weights\""},
        {"adapters: {rank: 1, on: [a], train: [b], base: plain, base_hash: abc}\n", NULL,
         "the base of the run has hash abc, that of \""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t live = tr_alloc_live();
        struct tr_job *job;
        if (open_job(cases[i].section, cases[i].base, false, &job) == TR_OK) fail_msg("case %zu is taken", i);
        if (!strstr(tr_error_message(), cases[i].said)) fail_msg("case %zu: %s", i, tr_error_message());
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* A run to begin with is the base of a network with adapters, however short the section is; and of no
   other. */
static void a_run_becomes_the_base(void **state)
{
    static const struct {
        const char *section;
        bool adapted;
    } cases[] = {{ADAPTED, true},
                 {"adapters: {rank: 1, base: other}\n", true},
                 {"adapters: null\n", false},
                 {"", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job = good(cases[i].section, "plain", false);
        assert_int_equal(job->adapters.rank > 0, cases[i].adapted);
        assert_int_equal(job->model->base_count > 0, cases[i].adapted);
        assert_int_equal(job->adapters.base != NULL, cases[i].adapted);
        if (cases[i].adapted) assert_non_null(strstr(job->adapters.base, "/plain/checkpoint-00000002"));
        tr_job_destroy(&job);
    }
    struct tr_job *job;
    /* "lora" alone has a rank of 8, which is too much here. */
    assert_int_equal(open_job("adapters: lora\n", "plain", false, &job), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "adapters.rank is 8, and the 3 x 4 weights beside one"));
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_job *job;
        refuse_begin(at);
        const tr_status status = open_job(ADAPTED, "plain", false, &job);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %d: %s, %s", (int)at, tr_status_name(status), tr_error_message());
        tr_job_destroy(&job);
        assert_int_equal(tr_alloc_live(), live);
    }
    struct tr_job *whole = good(ADAPTED, "plain", true);
    float *arena = tr_alloc_zero((size_t)whole->model->arena_floats, sizeof *arena);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_job_load_base(whole, arena);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_free(arena);
    tr_job_destroy(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_is_what_the_run_evaluates),
        cmocka_unit_test(other_runs_are_refused),
        cmocka_unit_test(a_run_becomes_the_base),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.base", tests, set_up, scratch_place_remove);
}
