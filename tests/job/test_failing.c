/* Devices of which one thing fails: whichever it is of those that a step asks of a device, operation,
 * allocation, copy or wait, the step tells of it, and what was made is freed.
 */
#include "support/operations/failing.h"

#include "support/files/npy.h"
#include "support/training.h"

#include "base/fail.h"
#include "job/step/gradient.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "train_text.h"

enum { ROWS = 6, SIDE = 4, CHANNELS = 3, PIXELS = SIDE * SIDE };

/* ---- jobs ---- */

#define IMAGES "data: {train: {npy: {features: images.npy, labels: labels.npy}}}\n"
#define DENSE  "layers: [{dense: {units: 3, name: last}}]\n"

static const struct {
    const char *name, *model;
} models[] = {
    {"images", IMAGES "layers: [{conv: {filters: 2, kernel: 2}}, batch_norm, {dense: {units: 3}}]\n"},
    {"changed", IMAGES "input: {rotate: 20, mixup: 0.4, cutmix: 0.5, erase: 0.5}\n" DENSE},
    {"flipped", IMAGES "input: {flip: true, pad: 1, crop: 4}\n" DENSE},
    {"masks", "data: {train: {npy: {features: images.npy, labels: masks.npy}}}\n"
              "input: {rotate: 20}\nlayers: [{conv: {filters: 2, kernel: 1}}]\n"
              "loss: {kind: softmax_cross_entropy, per: pixel}\n"},
    {"floats", "data: {train: {npy: {features: numbers.npy, labels: labels.npy}}}\n"
               "input: {flip: true, mixup: 0.4}\n" DENSE},
    {"table", "data: {train: {csv: {path: table.csv, label: value, missing: mean}}}\n"
              "layers: [{dense: {units: 3, name: a}}, {dense: 1}]\nloss: mean_squared_error\n"},
    {"parts",
     "data: {train: {join: {sources: {photo: {npy: {features: images.npy, labels: labels.npy}}, "
     "facts: {csv: {path: facts.csv, label: none}}}}}}\n"
     "input: {flip: true}\n"
     "layers: [{flatten: {from: photo, name: seen}}, {concat: {from: [seen, facts]}}, {dense: 3}]\n"},
    {"texts", "data: {train: {text: {path: words.tsv}}}\nlayers: [{embedding: 3}, last, {dense: 2}]\n"},
    {"looks", "data: {train: {text: {path: words.tsv}}}\n"
              "layers: [{embedding: 4}, {attention: {heads: 2}}, {dense: 3}, last, {dense: 2}]\n"},
    {"pairs", "data: {train: {join: {sources: {long: {text: {path: pairs.csv, layout: table, header: true, "
              "labels: false, text_columns: long}}, short: {text: {path: pairs.csv, layout: table, "
              "header: true, next: true, text_columns: short}}}}}}\n"
              "layers: [{embedding: {width: 4, from: long, name: memory}}, {embedding: {width: 4, from: "
              "short}}, {cross_attention: {heads: 2, with: memory, dropout: 0.1}}, {dense: 8}]\n"},
};

/* Where numbers are: in memory of the device that computes, or of another, and the training data with the
   device or not. */
enum place { PROCESSOR, APART, APART_SENT, TWO_DEVICES, PLACES };

static const struct run {
    const char *model, *set[4];
    bool listens;
} runs[] = {
    {"images", {"optimizer={rule: momentum, rate: 0.1, ema: 0.5, clip_norm: 1}", "train.pass=1"}, true},
    {"images", {"optimizer={rule: lamb, rate: 0.1, sam: 0.05}", "train.recompute=true"}},
    {"images", {"optimizer={rule: muon, rate: 0.1, momentum: 0.5}"}},
    {"images", {"distill={teacher: images, alpha: 0.5, temperature: 2}"}},
    {"changed", {"train.steps=2"}},
    {"flipped", {"train.pass=2"}},
    {"masks", {"train.steps=2"}},
    {"floats", {"train.steps=2"}},
    {"table", {"layers.a.frozen=true", "optimizer={rule: sgd, rate: 0.1, clip_norm: 1}"}},
    {"parts", {"train.steps=2"}},
    {"texts", {"train.pass=1"}},
    {"pairs", {"optimizer={rule: adam, rate: 0.1, amsgrad: true}"}},
    {"looks",
     {"adapters={rank: 2, dropout: 0.2, base: looks, on: [attention1, attention1.value, dense1]}",
      "train.pass=1"}},
};

static void begin_job(struct job *job, const struct run *run)
{
    static char path[SCRATCH_PATH];
    char file[32];
    snprintf(file, sizeof file, "%s.yaml", run->model);
    job_begin(job, scratch_join(path, scratch_place, file));
    job_set(job, "train.prefetch=0"); /* a reader of its own takes no part */
    for (int i = 0; run->set[i]; i++) job_set(job, run->set[i]);
    job->settings.journal = "";
}

static int make(void **state)
{
    uint8_t image[ROWS * PIXELS * CHANNELS], mask[ROWS * PIXELS], label[ROWS];
    float number[ROWS * PIXELS * CHANNELS];
    scratch_place_make(state);
    for (size_t i = 0; i < sizeof image; i++) image[i] = (uint8_t)(i * 37 % 251);
    for (size_t i = 0; i < sizeof image; i++) number[i] = (float)image[i] / 128 - 1;
    for (size_t i = 0; i < sizeof mask; i++) mask[i] = (uint8_t)(i / 3 % 2);
    for (int i = 0; i < ROWS; i++) label[i] = (uint8_t)(i % 3);
    npy_write(scratch_in("images.npy"), "|u1", "6, 4, 4, 3", image, sizeof image);
    npy_write(scratch_in("numbers.npy"), "<f4", "6, 4, 4, 3", number, sizeof number);
    npy_write(scratch_in("masks.npy"), "|u1", "6, 4, 4", mask, sizeof mask);
    npy_write(scratch_in("labels.npy"), "|u1", "6,", label, sizeof label);
    scratch_write_text("table.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,NA,2\n1,1,1\n0,1,2\n1,0,1\n");
    scratch_write_text("facts.csv", "a,b\n1,2\n2,-1\n-1,1\n1,1\n0,1\n1,0\n");
    scratch_write_text("words.tsv", "one two\t0\nthree\t1\ntwo three one\t1\none\t0\nthree one\t1\ntwo\t0\n");
    scratch_write_text("pairs.csv", "long,short\none two,two\nthree,three one\ntwo three one,one two\n"
                                    "one,one\nthree one,two one\ntwo,one\n");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "name: %s\n%soptimizer: {rule: sgd, rate: 0.1}\n"
                 "train: {batch: 6, microbatches: 3, steps: 2, log_every: 1}\n",
                 models[i].name, models[i].model);
        train_text(models[i].name, text);
    }
    return 0;
}

/* ---- a step ---- */

struct step {
    const struct tr_job *job;
    bool listens;
    tr_device *holder, *reader;
    tr_variables *variables;
    tr_gradient *gradient;
    /* What a device may still write. */
    struct tr_variables_answer answer;
    float sums[TR_PASS_SUMS];
};

static tr_status hear(void *user, int64_t from)
{
    *(int64_t *)user = from;
    return TR_OK;
}

/* All that strategies ask of gradients and variables. */
static tr_status take(struct step *step)
{
    const struct tr_job *job = step->job;
    const struct tr_gradient_part part = {.end = job->train.microbatches, .end_step = job->train.steps};
    const int64_t floats = job->model->arena_floats;
    const float *gradient;
    float norm;
    int64_t examples, heard = -1;
    bool nonfinite;
    char name[128], hash[TR_SHA256_TEXT];
    TR_TRY(tr_variables_create(step->holder, job->model, &job->optimizer, NULL, &step->variables));
    tr_variables *variables = step->variables;
    TR_TRY(tr_variables_initialize(variables, 1));
    TR_TRY(tr_variables_begin_ema(variables));
    TR_TRY(tr_gradient_create(step->reader, job, variables, &part, NULL, &step->gradient));
    if (step->listens) tr_gradient_listen(step->gradient, hear, &heard);
    for (int64_t at = 0; at < 3; at++) {
        TR_TRY(at == 2 ? tr_variables_begin_behind(variables, at, true)
                       : tr_variables_begin_step(variables, at));
        if (at == 1 && tr_gradient_may_begin(step->gradient)) TR_TRY(tr_gradient_begin(step->gradient, at));
        TR_TRY(at == 0 ? tr_gradient_step(step->gradient, at, &examples)
                       : tr_gradient_enqueue(step->gradient, at, step->sums, &examples));
        TR_TRY(tr_gradient_deliver(step->gradient, floats, &gradient));
        TR_TRY(tr_variables_measure(variables, gradient));
        if (job->optimizer.sam > 0) {
            TR_TRY(tr_variables_perturb(variables, gradient, 0, floats));
            TR_TRY(tr_gradient_enqueue(step->gradient, at, NULL, &examples));
            TR_TRY(tr_gradient_deliver(step->gradient, floats, &gradient));
            TR_TRY(tr_variables_restore(variables, 0, floats));
        }
        TR_TRY(tr_variables_hold(variables, NULL, true));
        TR_TRY(tr_variables_update(variables, gradient, 0, floats));
        TR_TRY(tr_variables_ask(variables, &step->answer));
        TR_TRY(tr_variables_norm(variables, &norm));
        TR_TRY(tr_variables_nonfinite(variables, &nonfinite));
        assert_int_equal(examples, ROWS);
        assert_false(nonfinite);
    }
    if (step->listens) assert_int_equal(heard, 0);
    TR_TRY(tr_gradient_locate_nonfinite(step->gradient, 2, name, sizeof name));
    if (tr_variables_arena(variables, TR_ARENA_EMA)) TR_TRY(tr_variables_complete_ema(variables));
    return tr_variables_hash(variables, hash);
}

static void release(struct step *step)
{
    tr_device_finish(step->reader); /* before what it reads is gone */
    tr_device_finish(step->holder);
    tr_gradient_destroy(&step->gradient);
    tr_variables_destroy(&step->variables);
}

static int64_t no_room(tr_device *device)
{
    (void)device;
    return 0;
}

static void fail_each(const struct run *run, enum place place)
{
    struct job job;
    begin_job(&job, run);
    tr_trainer *trainer = job_trainer(&job);
    struct step step = {.job = trainer_job(trainer), .listens = run->listens};
    must_train(tr_device_create("cpu", 1, NULL, &step.reader));
    must_train(tr_device_create("cpu", 1, NULL, &step.holder));
    const struct tr_device_class *const class = step.reader->class, *const of_holder = step.holder->class;
    struct tr_device_class failing = failing_wholly_like(step.reader);
    failing.host_memory = place == PROCESSOR;
    failing.room = place == APART_SENT ? no_room : NULL;
    step.reader->class = step.holder->class = &failing; /* copies, where memory is not the host's */
    tr_device *other = step.holder;
    if (place != TWO_DEVICES) step.holder = step.reader;
    failing_operation = -1;
    must_train(take(&step)); /* its source keeps what it opens when it is read first */
    release(&step);
    bool done = false;
    for (failing_operation = 0; !done; failing_operation++) {
        const int64_t live = tr_alloc_live();
        operation_calls = 0;
        const tr_status status = take(&step);
        done = operation_calls <= failing_operation;
        if (status != (done ? TR_OK : TR_EUNSUPPORTED) || (!done && !strstr(tr_error_message(), " fails")))
            fail_msg("%s, %s, place %d: call %d of %d fails, and the step says %s (%s)", run->model,
                     run->set[0], place, failing_operation, operation_calls, tr_status_name(status),
                     status == TR_OK ? "" : tr_error_message());
        release(&step);
        if (tr_alloc_live() != live)
            fail_msg("%s, %s, place %d: after call %d (%s) %d blocks are left", run->model, run->set[0],
                     place, failing_operation, done ? "" : tr_error_message(), (int)(tr_alloc_live() - live));
    }
    assert_true(failing_operation > 50);
    step.reader->class = class; /* each has its own, which goes with it */
    other->class = of_holder;
    tr_device_destroy(&step.reader);
    tr_device_destroy(&other);
    tr_trainer_destroy(&trainer);
}

static void every_failure_is_told(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++)
        for (enum place place = 0; place < PLACES; place++) fail_each(&runs[r], place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_is_told),
    };
    return cmocka_run_group_tests_name("job.failing", tests, make, scratch_place_remove);
}
