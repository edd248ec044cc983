/* Parameters from outside: listed, taken, given; and a listener that ends a run. */
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A family with a moving average: mnist-mlp. */
static void begin(struct job *job, uint64_t seed)
{
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i].name, "mnist-mlp") == 0) family_job(job, &families[i], family_place);
    job->settings.has_seed = true;
    job->settings.seed = seed;
}

static void test_listed(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info facts = TR_TRAIN_INFO_INIT;
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    int64_t total = 0;
    begin(&job, 1);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &facts));
    for (int32_t i = 0; i < tr_trainer_parameter_count(trainer); i++) {
        int64_t count = 1;
        must_train(tr_trainer_parameter_at(trainer, i, &info));
        for (int32_t k = 0; k < info.dimensions; k++) count *= info.shape[k];
        assert_int_equal(count, info.count);
        total += count;
    }
    assert_int_equal(total, facts.parameters);
    assert_int_equal(tr_trainer_parameter_at(trainer, tr_trainer_parameter_count(trainer), &info),
                     TR_ENOTFOUND);
    assert_int_equal(tr_trainer_parameter_at(trainer, -1, &info), TR_ENOTFOUND);
    tr_trainer_destroy(&trainer);
}

/* All parameters of one trainer given to another make it the same, moving averages included. */
static void test_given(void **state)
{
    (void)state;
    struct job job;
    char hash[2][65];
    tr_trainer *from, *to;
    struct tr_train_event evaluated[2] = {TR_TRAIN_EVENT_INIT, TR_TRAIN_EVENT_INIT};
    begin(&job, 7);
    from = job_trainer(&job);
    begin(&job, 1);
    to = job_trainer(&job);
    must_train(tr_trainer_hash(from, hash[0]));
    must_train(tr_trainer_hash(to, hash[1]));
    assert_string_not_equal(hash[0], hash[1]);
    for (int32_t i = 0; i < tr_trainer_parameter_count(from); i++) {
        struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
        must_train(tr_trainer_parameter_at(from, i, &info));
        float *values = malloc((size_t)info.count * sizeof *values);
        must_train(tr_trainer_parameter(from, info.name, values, info.count));
        must_train(tr_trainer_set_parameter(to, info.name, values, info.count));
        assert_int_equal(tr_trainer_set_parameter(to, info.name, values, info.count + 1), TR_EMISMATCH);
        free(values);
    }
    must_train(tr_trainer_hash(to, hash[1]));
    assert_string_equal(hash[0], hash[1]);
    must_train(tr_trainer_evaluate(from, "test", &evaluated[0]));
    must_train(tr_trainer_evaluate(to, "test", &evaluated[1]));
    assert_true(evaluated[0].loss == evaluated[1].loss);
    assert_int_equal(tr_trainer_set_parameter(to, "no.such", &(float){0}, 1), TR_ENOTFOUND);
    tr_trainer_destroy(&from);
    tr_trainer_destroy(&to);
}

static int end_at(void *user, const struct tr_train_event *event)
{
    return event->kind == TR_EVENT_STEP && event->step >= *(int64_t *)user;
}

static void test_listener_ends_the_run(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    int64_t last = 2;
    begin(&job, 1);
    job_set(&job, "train.log_every=1");
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, end_at, &last), TR_EINTERRUPTED);
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.step, 2);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_listener_ends_the_run),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
