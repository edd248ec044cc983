/* The bytes that sets and gradients say they take of a device are those that the device was asked for: on a
 * device with memory of its own, for every family of jobs. Likewise variables, and teachers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/operations/shadow.h"
#include "support/training.h"

#include "refuse.h"

#include "job/feed/resident.h"
#include "job/step/gradient.h"
#include "job/step/lesson.h"
#include "job/step/variables.h"
#include "train/loop/trainer.h"

/* What the device was asked for since. */
static int64_t taken_since(int64_t begin)
{
    return (int64_t)shadow_taken - begin;
}

/* The job of a family, whose data are open as long as its trainer is there. */
static tr_trainer *open_job(const struct family *family, const char *pass)
{
    struct job job;
    family_job(&job, family, family_place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, pass);
    job.settings.set = job.set;
    return job_trainer(&job);
}

static void a_set_takes_what_it_says(void **state)
{
    int kept = 0;
    (void)state;
    for (int f = 0; f < family_count; f++) {
        tr_trainer *trainer = open_job(&families[f], "train.pass=0");
        const tr_source *source = trainer_job(trainer)->source[TR_SET_TRAIN];
        struct tr_resident resident;
        tr_device *device;
        int64_t expected;
        must_train(shadow_create(1, NULL, &device));
        int64_t begin = (int64_t)shadow_taken;
        must_train(tr_resident_expect(device, source, &expected));
        assert_int_equal(taken_since(begin), 0);
        must_train(tr_resident_make(device, source, true, true, true, &resident));
        if (taken_since(begin) != expected || (int64_t)resident.memory != expected)
            fail_msg("%s: %lld bytes are expected and %zu told, %lld are taken", families[f].name,
                     (long long)expected, resident.memory, (long long)taken_since(begin));
        assert_int_equal(resident.here, expected > 0);
        kept += expected > 0;
        tr_resident_release(&resident);
        assert_int_equal(taken_since(begin), 0);
        /* Where memory is missing, nothing is kept, nor is it on a later try that succeeds. */
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            const tr_status status = tr_resident_make(device, source, true, true, true, &resident);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_resident_release(&resident);
            assert_int_equal(taken_since(begin), 0);
            assert_int_equal(tr_alloc_live(), live);
        }
        /* Half of what is free is enough, and not a byte less: then nothing is expected, nor taken. */
        shadow_room = 2 * expected;
        must_train(tr_resident_expect(device, source, &expected));
        assert_int_equal(2 * expected, shadow_room);
        shadow_room = 2 * expected - 1;
        must_train(tr_resident_expect(device, source, &expected));
        must_train(tr_resident_make(device, source, true, true, true, &resident));
        assert_int_equal(expected, 0);
        assert_int_equal(taken_since(begin), 0);
        tr_resident_release(&resident);
        shadow_room = INT64_MAX;
        tr_device_destroy(&device);
        tr_trainer_destroy(&trainer);
    }
    assert_true(kept > 2);
}

/* In one pass, and in several, which need slots to wait in. */
static void a_gradient_takes_what_it_says(void **state)
{
    static const char *const passes[] = {"train.pass=0", "train.pass=1"};
    (void)state;
    for (int f = 0; f < family_count; f++)
        for (size_t p = 0; p < sizeof passes / sizeof passes[0]; p++) {
            tr_trainer *trainer = open_job(&families[f], passes[p]);
            const struct tr_job *job = trainer_job(trainer);
            const struct tr_gradient_part part = {.end = job->train.microbatches,
                                                  .end_step = job->train.steps};
            tr_variables *variables;
            tr_gradient *gradient;
            tr_device *device;
            must_train(shadow_create(1, NULL, &device));
            must_train(tr_variables_create(device, job->model, &job->optimizer, NULL, &variables));
            int64_t begin = (int64_t)shadow_taken;
            must_train(tr_gradient_create(device, job, variables, &part, NULL, &gradient));
            if (taken_since(begin) != (int64_t)tr_gradient_memory(gradient))
                fail_msg("%s, %s: %zu bytes are told, %lld are taken", families[f].name, passes[p],
                         tr_gradient_memory(gradient), (long long)taken_since(begin));
            tr_gradient_destroy(&gradient);
            assert_int_equal(taken_since(begin), 0);
            tr_variables_destroy(&variables);
            tr_device_destroy(&device);
            tr_trainer_destroy(&trainer);
        }
}

/* Parameters, as many states as the rule has, what its updates need in addition, and a few numbers. */
static void variables_take_what_they_say(void **state)
{
    static const struct {
        const char *optimizer;
        int arenas;
    } cases[] = {
        {"optimizer={rule: sgd, rate: 0.1}", 1},
        {"optimizer={rule: momentum, rate: 0.1, ema: 0.5}", 3},
        {"optimizer={rule: adagrad, rate: 0.1}", 2},
        {"optimizer={rule: adam, rate: 0.1, amsgrad: true, ema: 0.5}", 5},
        {"optimizer={rule: sgd, rate: 0.1, sam: 0.05}", 1},
        {"optimizer={rule: lamb, rate: 0.1}", 3},
        {"optimizer={rule: muon, rate: 0.1, sam: 0.05}", 3},
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int with_memory = 0; with_memory < 2; with_memory++) {
            tr_trainer *trainer = open_job(&families[0], cases[c].optimizer);
            const struct tr_job *job = trainer_job(trainer);
            const struct tr_model *model = job->model;
            const int64_t floats = model->arena_floats * (int64_t)sizeof(float);
            const int64_t norms = (model->parameter_count + 1) * (int64_t)sizeof(float);
            tr_variables *variables;
            tr_device *device;
            shadow_memory = with_memory ? INT64_MAX : 0;
            must_train(shadow_create(1, NULL, &device));
            int64_t begin = (int64_t)shadow_taken;
            must_train(tr_variables_create(device, model, &job->optimizer, NULL, &variables));
            assert_int_equal(taken_since(begin), tr_variables_memory(variables));
            assert_int_equal(tr_variables_arenas(&job->optimizer), cases[c].arenas);
            assert_int_equal(taken_since(begin), cases[c].arenas * floats +
                                                     tr_variables_scratch(model, &job->optimizer) + norms +
                                                     (int64_t)sizeof(struct tr_step_scalars));
            tr_variables_destroy(&variables);
            assert_int_equal(taken_since(begin), 0);
            tr_device_destroy(&device);
            tr_trainer_destroy(&trainer);
        }
    shadow_memory = 0;
}

/* A part says what of it is touched; a device with its own memory has the whole. */
static void parts_of_variables_take_what_they_touch(void **state)
{
    (void)state;
    tr_trainer *trainer = open_job(&families[0], "optimizer={rule: adam, rate: 0.1}");
    const struct tr_job *job = trainer_job(trainer);
    const struct tr_parameter *parameters = job->model->parameters;
    const struct tr_variables_part part = {.begin = parameters[1].offset,
                                           .end = parameters[4].offset,
                                           .state_begin = parameters[2].offset,
                                           .state_end = parameters[3].offset};
    const int64_t touched = part.end - part.begin + 2 * (part.state_end - part.state_begin),
                  untouched = 3 * job->model->arena_floats - touched;
    int64_t told[2];
    for (int with_memory = 0; with_memory < 2; with_memory++) {
        tr_variables *variables;
        tr_device *device;
        shadow_memory = with_memory ? INT64_MAX : 0;
        must_train(shadow_create(1, NULL, &device));
        must_train(tr_variables_create_part(device, job->model, &job->optimizer, &part, NULL, &variables));
        told[with_memory] = (int64_t)tr_variables_memory(variables);
        tr_variables_destroy(&variables);
        tr_device_destroy(&device);
    }
    shadow_memory = 0;
    assert_int_equal(told[1] - told[0], untouched * (int64_t)sizeof(float));
    tr_trainer_destroy(&trainer);
}

/* A teacher takes its pass and its parameters, which is expected without making it. */
static void a_teacher_takes_what_it_says(void **state)
{
    char out[SCRATCH_PATH], distill[SCRATCH_PATH + 32];
    struct job job;
    struct outcome outcome;
    int64_t expected;
    tr_lesson *lesson = NULL;
    tr_device *device;
    (void)state;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.steps=1");
    job.settings.set = job.set;
    job.settings.out = scratch_join(out, family_place, "teacher");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    snprintf(distill, sizeof distill, "distill={teacher: %s}", out);
    tr_trainer *trainer = open_job(&families[0], distill);
    const struct tr_job *taught = trainer_job(trainer);
    const struct tr_pass_limits limits = {.examples = 5, .microbatches = 2, .training = true};
    must_train(tr_lesson_expect(taught, &limits, &expected));
    assert_true(expected > taught->model->arena_floats * (int64_t)sizeof(float));
    must_train(shadow_create(1, NULL, &device));
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        const int64_t begin = (int64_t)shadow_taken;
        refuse_begin(at);
        const tr_status status = tr_lesson_create(device, taught, &limits, &lesson);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) {
            assert_int_equal(tr_lesson_memory(lesson), expected);
            /* and a float of room */
            assert_int_equal(taken_since(begin), expected + (int64_t)sizeof(float));
        } else {
            assert_null(lesson);
        }
        tr_lesson_destroy(&lesson);
        assert_int_equal(taken_since(begin), 0);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_device_destroy(&device);
    tr_trainer_destroy(&trainer);
    /* A job without a teacher has no lesson. */
    trainer = open_job(&families[0], "train.pass=0");
    must_train(tr_lesson_expect(trainer_job(trainer), &limits, &expected));
    assert_int_equal(expected, 0);
    must_train(tr_lesson_create(NULL, trainer_job(trainer), &limits, &lesson));
    assert_null(lesson);
    assert_int_equal(tr_lesson_memory(NULL), 0);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_takes_what_it_says),
        cmocka_unit_test(a_gradient_takes_what_it_says),
        cmocka_unit_test(variables_take_what_they_say),
        cmocka_unit_test(parts_of_variables_take_what_they_touch),
        cmocka_unit_test(a_teacher_takes_what_it_says),
    };
    return cmocka_run_group_tests_name("job.memory", tests, family_place_make, family_place_remove);
}
