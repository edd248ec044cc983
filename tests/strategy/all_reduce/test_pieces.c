/* Gradients that one process applies while it forms them, or piece by piece: the bits of whole ones, in less
 * memory. */
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
/* 784 x 500, which one operation forms and applies; four pieces where it may not. */
#define FEWER_WEIGHTS (784 * 500)
#define FEWER         "layers=[{dense: {units: 500, activation: relu}}, {dropout: 0.5}, {dense: 10}]"

static void begin_with(struct job *job, const char *layers, const char *strategy)
{
    family_job(job, &families[0], family_place);
    job_set(job, layers);
    job_set(job, "train.batch=21"); /* microbatches of 6 and of 5 rows */
    job_set(job, "train.microbatches=4");
    job_set(job, "train.steps=3");
    job->settings.set = job->set;
    job->settings.strategy = strategy;
}

static void begin(struct job *job, const char *strategy)
{
    begin_with(job, LAYERS, strategy);
}

static int64_t memory_of(struct job *job)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_info(trainer, &info));
    tr_trainer_destroy(&trainer);
    return info.memory;
}

static void check_bits(const char *layers)
{
    static const char *const more[] = {"train.log_every=1", "optimizer={rule: momentum, rate: 0.01, l2: 0.1}",
                                       "optimizer={rule: adam, rate: 1e-3, ema: 0.9}"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        for (int threads = 1; threads <= 2; threads++) {
            static const char *const ways[] = {"allreduce", "allreduce,factors=always"};
            struct job job;
            struct outcome whole, got;
            begin_with(&job, layers, "allreduce,factors=never");
            job_set(&job, more[i]);
            job_outcome(&job, &whole);
            for (int w = 0; w < 2; w++) {
                begin_with(&job, layers, ways[w]);
                job_set(&job, more[i]);
                job.settings.threads = threads;
                job_outcome(&job, &got);
                expect_same(&whole, &got, ways[w]);
            }
        }
}

static void pieces_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    check_bits(LAYERS);
}

static void so_has_what_is_applied_tile_by_tile(void **state)
{
    (void)state;
    check_bits(FEWER);
}

/* Where updates are watched, for histograms, the device may not apply what it forms. */
static void so_have_those_that_are_watched(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct job job;
        struct outcome whole, got;
        begin_with(&job, FEWER, "allreduce,factors=never");
        job_outcome(&job, &whole);
        begin_with(&job, FEWER, "allreduce");
        job.settings.threads = threads;
        job.settings.tensorboard = family_place;
        job.settings.histograms = 1;
        job_outcome(&job, &got);
        expect_same(&whole, &got, "watched");
    }
}

/* What is frozen stays as it is. */
static void frozen_weights_have_no_update(void **state)
{
    (void)state;
    static const char frozen[] =
        "layers=[{dense: {units: 500, activation: relu, frozen: true}}, {dense: 10}]";
    struct job job;
    struct outcome whole, got;
    begin_with(&job, FEWER, "allreduce,factors=never");
    job_set(&job, frozen);
    job_outcome(&job, &whole);
    begin_with(&job, FEWER, "allreduce");
    job_set(&job, frozen);
    job_outcome(&job, &got);
    expect_same(&whole, &got, "frozen");
}

static void check_memory(const char *layers, int64_t weights)
{
    struct job whole, pieces;
    begin_with(&whole, layers, "allreduce,factors=never");
    begin_with(&pieces, layers, "allreduce");
    int64_t spared = memory_of(&whole) - memory_of(&pieces);
    assert_true(spared > weights * (int64_t)sizeof(float) / 2);
    assert_true(spared <= weights * (int64_t)sizeof(float));
}

static void they_take_no_memory_of_their_own(void **state)
{
    (void)state;
    check_memory(LAYERS, WEIGHTS);
    check_memory(FEWER, FEWER_WEIGHTS);
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
        cmocka_unit_test(so_has_what_is_applied_tile_by_tile),
        cmocka_unit_test(so_have_those_that_are_watched),
        cmocka_unit_test(frozen_weights_have_no_update),
        cmocka_unit_test(they_take_no_memory_of_their_own),
        cmocka_unit_test(whole_gradients_are_kept_where_they_are_wanted),
        cmocka_unit_test(a_bad_loss_applies_nothing),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
