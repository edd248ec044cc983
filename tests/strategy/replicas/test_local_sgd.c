/* Local SGD: one hash for a number of replicas, whatever the ranks; the average and the outer step are the
 * formulas that they are said to be; a round is the smallest piece of a run.
 */
#include "strategy/replicas/apart.h"

#include "base/alloc.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void every_family_has_one_hash(void **state)
{
    (void)state;
    static const char *const strategies[] = {
        "local-sgd,replicas=4,every=3",
        "local-sgd,replicas=5,every=2,momentum=0.5,rate=0.7",
        "local-sgd,replicas=3,every=2,momentum=0.9,nesterov=true",
    };
    static const int replicas[] = {4, 5, 3};
    for (int f = 0; f < family_count; f++)
        for (int s = 0; s < 3; s++) {
            struct job job;
            family_job(&job, &families[f], family_place);
            job_set(&job, "train.microbatches=6");
            job.settings.strategy = strategies[s];
            apart_expect_one_hash(&job, s == f % 3 ? replicas[s] : 2, families[f].name);
        }
}

static void options_keep_the_hash(void **state)
{
    (void)state;
    static const char *const variants[] = {
        "optimizer.clip_norm=0.5", "train.on_nonfinite=skip", "train.pass=1",
        "optimizer.ema=0.9",       "train.batch=4", /* fewer examples than replicas in the last batch of an
                                                       epoch, and 97 = 24 * 4 + 1 */
    };
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        struct job job;
        family_job(&job, &families[0], family_place);
        job_set(&job, "train.microbatches=4");
        job_set(&job, "train.steps=8");
        job_set(&job, variants[i]);
        job.settings.strategy = "local-sgd,replicas=4,every=3";
        apart_expect_one_hash(&job, 3, variants[i]);
    }
}

/* ---- formulas ---- */

#define BIAS_COUNT 10
#define WEIGHTS    "dense2.weights"

struct values {
    int64_t count;
    float *value;
};

/* A perceptron under plain SGD; the weights after `steps` steps. */
static struct values train_plain(const char *strategy, int64_t steps, const char *batch)
{
    struct job job;
    struct values values = {.count = 50 * 10};
    family_job(&job, &families[2], family_place);
    job_set(&job, "optimizer={rule: sgd, rate: 0.2}");
    job_set(&job, "input.scale=1/255");
    job_set(&job, "train.microbatches=4");
    job_set(&job, batch);
    job.settings.strategy = strategy;
    job.settings.steps = steps > 0 ? steps : 1;
    tr_trainer *trainer = job_trainer(&job);
    if (steps > 0) must_train(tr_trainer_run(trainer, NULL, NULL));
    values.value = malloc((size_t)values.count * sizeof *values.value);
    assert_non_null(values.value);
    must_train(tr_trainer_parameter(trainer, WEIGHTS, values.value, values.count));
    tr_trainer_destroy(&trainer);
    return values;
}

/* Differences count against the way that training went. */
static void expect_near(const struct values *got, const double *expected, const struct values *start,
                        const char *what)
{
    double way = 0, worst = 0;
    for (int64_t i = 0; i < got->count; i++) {
        way = fmax(way, fabs(expected[i] - (double)start->value[i]));
        worst = fmax(worst, fabs(expected[i] - (double)got->value[i]));
    }
    assert_true(way > 1e-3);
    if (!(worst <= 1e-4 * way)) fail_msg("%s: differs by %g of a way of %g", what, worst, way);
}

static void one_replica_is_plain_training(void **state)
{
    (void)state;
    struct values plain = train_plain("allreduce", 6, "train.batch=30");
    struct values replica = train_plain("local-sgd,replicas=1,every=4", 6, "train.batch=30");
    assert_memory_equal(plain.value, replica.value, (size_t)plain.count * sizeof *plain.value);
    free(plain.value);
    free(replica.value);
}

/* Averaged after each step, replicas of plain SGD take the step of the mean gradient. */
static void averages_of_single_steps_are_synchronous(void **state)
{
    (void)state;
    const char *batch = "train.batch=20"; /* replicas have as many examples each in every step */
    struct values start = train_plain("allreduce", 0, batch);
    struct values plain = train_plain("allreduce", 5, batch);
    struct values replicas = train_plain("local-sgd,replicas=4,every=1", 5, batch);
    double *expected = calloc((size_t)plain.count, sizeof *expected);
    assert_non_null(expected);
    for (int64_t i = 0; i < plain.count; i++) expected[i] = (double)plain.value[i];
    expect_near(&replicas, expected, &start, "4 replicas, averaged after each step");
    free(expected);
    free(start.value);
    free(plain.value);
    free(replicas.value);
}

static void the_outer_step_is_its_formula(void **state)
{
    (void)state;
    const char *batch = "train.batch=30";
    struct values start = train_plain("allreduce", 0, batch), third = train_plain("allreduce", 3, batch),
                  sixth = train_plain("allreduce", 6, batch);
    struct values half = train_plain("local-sgd,replicas=1,every=3,rate=0.5", 3, batch);
    struct values nesterov = train_plain("local-sgd,replicas=1,every=3,momentum=0.9,nesterov=true", 3, batch);
    struct values ball = train_plain("local-sgd,replicas=1,every=3,momentum=0.9", 6, batch);
    double *expected = calloc((size_t)start.count, sizeof *expected);
    assert_non_null(expected);
    for (int64_t i = 0; i < start.count; i++)
        expected[i] = ((double)start.value[i] + (double)third.value[i]) / 2;
    expect_near(&half, expected, &start, "half a step");
    for (int64_t i = 0; i < start.count; i++)
        expected[i] = (double)start.value[i] - 1.9 * ((double)start.value[i] - (double)third.value[i]);
    expect_near(&nesterov, expected, &start, "Nesterov's momentum");
    for (int64_t i = 0; i < start.count; i++) /* the first round ends where plain training is */
        expected[i] = (double)sixth.value[i] - 0.9 * ((double)start.value[i] - (double)third.value[i]);
    expect_near(&ball, expected, &start, "momentum");
    free(expected);
    struct values *all[] = {&start, &third, &sixth, &half, &nesterov, &ball};
    for (int i = 0; i < 6; i++) free(all[i]->value);
}

/* ---- what it learns ---- */

static double accuracy_of(const char *strategy)
{
    struct job job;
    struct outcome outcome;
    job_begin(&job, TRIREME_SOURCE_DIR "/models/mnist-quick.yaml");
    job.settings.threads = 2;
    job.settings.steps = 200;
    job.settings.strategy = strategy;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    print_message("%s: accuracy %.4f after 200 steps\n", strategy, outcome.evaluated_accuracy);
    return outcome.evaluated_accuracy;
}

/* At the same number of examples replicas come about as far. These runs have the same bits everywhere, so the
   bounds leave room for changes of the arithmetic and not for luck. */
static void replicas_learn_as_well(void **state)
{
    (void)state;
    double synchronous = accuracy_of("allreduce"); /* 0.9783 */
    assert_true(synchronous > 0.973);
    assert_true(accuracy_of("local-sgd,replicas=2") > synchronous - 0.005);             /* 0.9770 */
    assert_true(accuracy_of("local-sgd,replicas=4,momentum=0.5") > synchronous - 0.01); /* 0.9719 */
}

/* ---- rounds ---- */

struct seen {
    int64_t every, steps;
    int events;
};

static int expect_boundary(void *user, const struct tr_train_event *event)
{
    struct seen *seen = user;
    seen->events++;
    assert_true(event->step % seen->every == 0 || event->step == seen->steps);
    return 0;
}

static void a_run_is_seen_between_rounds_only(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.evaluate_every=2");
    job_set(&job, "train.steps=11");
    job.settings.strategy = "local-sgd,replicas=2,every=4";
    tr_trainer *trainer = job_trainer(&job);
    struct seen seen = {4, 11, 0};
    must_train(tr_trainer_run(trainer, expect_boundary, &seen));
    assert_true(seen.events >=
                3 + 3 + 1); /* steps and evaluations of three rounds, the last of which is the test; end */
    tr_trainer_destroy(&trainer);
}

/* Saved between rounds by some ranks, taken up by others, the outer momentum included. */
static void checkpoints_do_not_know_ranks(void **state)
{
    (void)state;
    static const char strategy[] = "local-sgd,replicas=3,every=2,momentum=0.6,rate=0.8";
    static const int sizes[][2] = {{1, 3}, {3, 1}, {2, 3}};
    struct job job;
    struct outcome alone, half, resumed;
    family_job(&job, &families[4], family_place); /* statistics and averages of weights */
    char out[SCRATCH_PATH + 64];
    snprintf(out, sizeof out, "%s/alone", family_place);
    apart_train_to(&job, strategy, out, false, 8, 1, &alone);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(out, sizeof out, "%s/ranks%zu", family_place, i);
        apart_train_to(&job, strategy, out, false, 4, sizes[i][0], &half);
        apart_train_to(&job, strategy, out, true, 8, sizes[i][1], &resumed);
        assert_string_equal(resumed.hash, alone.hash);
    }
}

/* A checkpoint goes on under another strategy, to the same end on any number of ranks. */
static void checkpoints_do_not_know_strategies(void **state)
{
    (void)state;
    static const char local[] = "local-sgd,replicas=3,every=2,momentum=0.6";
    static const int sizes[] = {1, 3};
    struct job job;
    family_job(&job, &families[4], family_place);
    char hash[2][65];
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < 2; i++) {
            char out[SCRATCH_PATH + 64];
            struct outcome outcome;
            snprintf(out, sizeof out, "%s/way%d-%d", family_place, way, i);
            apart_train_to(&job, way ? local : "allreduce", out, false, 3, 3, &outcome);
            apart_train_to(&job, way ? "allreduce" : local, out, true, 8, sizes[i], &outcome);
            snprintf(hash[i], sizeof hash[i], "%s", outcome.hash);
        }
        assert_string_equal(hash[0], hash[1]);
    }
}

/* ---- memory ---- */

static int64_t memory_of(const char *strategy, int64_t *floats)
{
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    family_job(&job, &families[0], family_place);
    job.settings.strategy = strategy;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &info));
    *floats = trainer_job(trainer)->model->arena_floats;
    tr_trainer_destroy(&trainer);
    return info.memory;
}

/* The outer step has the parameters of the last round; where it has momentum, the average of its steps, too,
   and room to save it from. */
static void the_outer_step_takes_memory(void **state)
{
    (void)state;
    int64_t floats;
    const int64_t plain = memory_of("local-sgd,replicas=3,every=2", &floats),
                  rate = memory_of("local-sgd,replicas=3,every=2,rate=0.7", &floats),
                  momentum = memory_of("local-sgd,replicas=3,every=2,momentum=0.5", &floats),
                  arena = floats * (int64_t)sizeof(float);
    assert_in_range(rate - plain, arena, arena + 256);
    assert_in_range(momentum - rate, 2 * arena, 2 * arena + 256);
}

/* Allocations that are still allowed; data are opened on a thread of their own, so two may count down. */
static atomic_llong left;

static int refuse_one(size_t size, void *user)
{
    (void)size, (void)user;
    return atomic_fetch_sub(&left, 1) == 0;
}

/* Creates and runs with allocation `at` refused; whether everything was allowed. */
static bool live_through(long long at)
{
    struct job job;
    tr_trainer *trainer = NULL;
    family_job(&job, &families[4], family_place);
    job_set(&job, "train.prefetch=0"); /* a reader would still allocate when the hook is gone */
    job.settings.set = job.set;
    job.settings.steps = 2;
    job.settings.strategy = "local-sgd,replicas=3,every=1,momentum=0.5";
    atomic_store(&left, at);
    tr_alloc_set_hook(refuse_one, NULL);
    tr_status status = tr_trainer_create(&job.settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    tr_trainer_destroy(&trainer);
    tr_alloc_set_hook(NULL, NULL);
    bool refused = atomic_load(&left) < 0;
    if (status != (refused ? TR_ENOMEM : TR_OK))
        fail_msg("allocation %lld refused gives %s: %s", at, tr_status_name(status), tr_error_message());
    return !refused;
}

static void refused_allocations_are_errors(void **state)
{
    (void)state;
    bool done = false;
    for (long long at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        done = live_through(at);
        if (tr_alloc_live() != live)
            fail_msg("allocation %lld refused leaves %lld blocks behind", at,
                     (long long)(tr_alloc_live() - live));
    }
}

static void a_round_allocates_nothing(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, &families[4], family_place);
    job.settings.steps = 10;
    job.settings.strategy = "local-sgd,replicas=3,every=2,momentum=0.5";
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_step(trainer, NULL));
    int64_t total = tr_alloc_total();
    for (int round = 1; round < 5; round++) must_train(tr_trainer_step(trainer, NULL));
    assert_int_equal(tr_alloc_total(), total);
    assert_int_equal(tr_trainer_step(trainer, NULL), TR_EINVAL); /* a call was a round */
    tr_trainer_destroy(&trainer);
}

/* ---- refusals ---- */

static void expect_refused(const char *strategy, int size, const char *part)
{
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    run_ranks(&job.settings, size, false, ranks);
    for (int r = 0; r < size; r++) {
        assert_int_equal(ranks[r].outcome.status, TR_EINVAL);
        if (!strstr(ranks[r].outcome.message, part))
            fail_msg("\"%s\" is missing in: %s", part, ranks[r].outcome.message);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    expect_refused("local-sgd,replicas=5", 1, "5 replicas share 4 microbatches");
    expect_refused("local-sgd,replicas=2", 3, "3 ranks share 2 replicas");
    expect_refused("local-sgd,replicas=2,every=0", 1, "every");
    expect_refused("local-sgd,replicas=2,momentum=1", 1, "momentum");
}

/* A replica whose numbers are not finite ends the run on all ranks, with one message. */
static void numbers_that_are_not_finite_are_named(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "optimizer={rule: sgd, rate: 1e30}");
    job.settings.set = job.set;
    job.settings.strategy = "local-sgd,replicas=3,every=4";
    run_ranks(&job.settings, 2, false, ranks);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ranks[r].outcome.status, TR_ENONFINITE);
        assert_non_null(strstr(ranks[r].outcome.message, "of replica 0"));
        assert_string_equal(ranks[r].outcome.message, ranks[0].outcome.message);
    }
    job_set(&job, "train.on_nonfinite=skip");
    run_ranks(&job.settings, 2, false, ranks);
    assert_true(ranks[0].outcome.status != TR_OK || ranks[0].outcome.warnings > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_one_hash),
        cmocka_unit_test(options_keep_the_hash),
        cmocka_unit_test(one_replica_is_plain_training),
        cmocka_unit_test(averages_of_single_steps_are_synchronous),
        cmocka_unit_test(the_outer_step_is_its_formula),
        cmocka_unit_test(replicas_learn_as_well),
        cmocka_unit_test(a_run_is_seen_between_rounds_only),
        cmocka_unit_test(checkpoints_do_not_know_ranks),
        cmocka_unit_test(checkpoints_do_not_know_strategies),
        cmocka_unit_test(the_outer_step_takes_memory),
        cmocka_unit_test(refused_allocations_are_errors),
        cmocka_unit_test(a_round_allocates_nothing),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(numbers_that_are_not_finite_are_named),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
