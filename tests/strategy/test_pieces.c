/* Gradients that one process forms and applies piece by piece: the bits of whole ones, in less memory. */
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* 784 x 3000 weights, five pieces of which the last is smaller. */
#define WEIGHTS (784 * 3000)
#define LAYERS  "layers=[{dense: {units: 3000, activation: relu}}, {dropout: 0.5}, {dense: 10}]"

static void begin(struct job *job, const char *strategy)
{
    family_job(job, &families[0], family_place);
    job_set(job, LAYERS);
    job_set(job, "train.batch=21"); /* microbatches of 6 and of 5 rows */
    job_set(job, "train.microbatches=4");
    job_set(job, "train.steps=3");
    job->settings.set = job->set;
    job->settings.strategy = strategy;
}

static int64_t memory_of(struct job *job)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_info(trainer, &info));
    tr_trainer_destroy(&trainer);
    return info.memory;
}

static void pieces_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    static const char *const more[] = {"train.log_every=1", "optimizer={rule: momentum, rate: 0.01, l2: 0.1}",
                                       "optimizer={rule: adam, rate: 1e-3, ema: 0.9}"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        for (int threads = 1; threads <= 2; threads++) {
            static const char *const ways[] = {"allreduce", "allreduce,factors=always"};
            struct job job;
            struct outcome whole, got;
            begin(&job, "allreduce,factors=never");
            job_set(&job, more[i]);
            job_outcome(&job, &whole);
            for (int w = 0; w < 2; w++) {
                begin(&job, ways[w]);
                job_set(&job, more[i]);
                job.settings.threads = threads;
                job_outcome(&job, &got);
                expect_same(&whole, &got, ways[w]);
            }
        }
}

static void they_take_no_memory_of_their_own(void **state)
{
    (void)state;
    struct job whole, pieces;
    begin(&whole, "allreduce,factors=never");
    begin(&pieces, "allreduce");
    int64_t spared = memory_of(&whole) - memory_of(&pieces);
    assert_true(spared > WEIGHTS * (int64_t)sizeof(float) * 3 / 4);
    assert_true(spared <= WEIGHTS * (int64_t)sizeof(float));
}

/* Norms want the whole gradient, and so do several passes. */
static void whole_gradients_are_kept_where_they_are_wanted(void **state)
{
    (void)state;
    static const char *const wants[] = {"optimizer={rule: adam, rate: 1e-3, clip_norm: 1}",
                                        "train.on_nonfinite=skip", "train.pass=2"};
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct job whole, pieces;
        struct outcome expected, got;
        begin(&whole, "allreduce,factors=never");
        begin(&pieces, "allreduce");
        job_set(&whole, wants[i]);
        job_set(&pieces, wants[i]);
        assert_int_equal(memory_of(&whole), memory_of(&pieces));
        job_outcome(&whole, &expected);
        job_outcome(&pieces, &got);
        expect_same(&expected, &got, wants[i]);
    }
}

/* A loss that is not finite is known before the first piece: the step ends as it would have. */
static void a_bad_loss_applies_nothing(void **state)
{
    (void)state;
    struct job whole, pieces;
    struct outcome expected, got;
    begin(&whole, "allreduce,factors=never");
    begin(&pieces, "allreduce");
    job_set(&whole, "optimizer={rule: sgd, rate: 1e30}");
    job_set(&pieces, "optimizer={rule: sgd, rate: 1e30}");
    job_outcome(&whole, &expected);
    job_outcome(&pieces, &got);
    assert_int_not_equal(expected.status, TR_OK);
    assert_int_equal(got.status, expected.status);
    assert_int_equal(got.step, expected.step);
    assert_string_equal(got.message, expected.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_bits_of_the_whole),
        cmocka_unit_test(they_take_no_memory_of_their_own),
        cmocka_unit_test(whole_gradients_are_kept_where_they_are_wanted),
        cmocka_unit_test(a_bad_loss_applies_nothing),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
