/* The pipeline: the hash of one process on any grid of stages and replicas, wherever the network is cut; the
 * order in which units flow bounds memory; and what cannot be cut is refused by name.
 */
#include "support/ranks.h"

#include "base/alloc.h"
#include "strategy/pipeline/cuts.h"
#include "strategy/pipeline/measure.h"
#include "strategy/pipeline/stage.h"
#include "strategy/strategy.h"
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

static int remove_place(void **state)
{
    return family_place_remove(state) == 0 && tr_alloc_live() == 0 ? 0 : -1;
}

static const struct family *family_called(const char *name)
{
    const struct family *family = families;
    while (strcmp(family->name, name) != 0) family++;
    return family;
}

/* The job on `size` ranks, which share memory or do not. */
static void expect_hash(struct job *job, const struct outcome *alone, int size, const char *name)
{
    job->settings.set = job->set;
    for (int apart = 0; apart < 2; apart++) {
        struct rank ranks[RANKS];
        char how[200];
        snprintf(how, sizeof how, "%s, %s on %d ranks%s", name, job->settings.strategy, size,
                 apart ? " apart" : "");
        run_ranks(&job->settings, size, apart, ranks);
        expect_ranks(alone, ranks, size, how);
        expect_same(alone, &ranks[0].outcome, how); /* losses and evaluations, too */
    }
}

static void find_alone(struct job *job, struct outcome *alone)
{
    job->settings.strategy = NULL;
    job_outcome(job, alone);
    if (alone->status != TR_OK) fail_msg("one process: %s", alone->message);
}

/* Named places and measured ones, in 1 to 3 stages of 1 or 2 ranks each. */
static void every_family_has_one_hash(void **state)
{
    (void)state;
    static const struct {
        const char *family, *two, *three;
    } cuts[] = {
        {"mnist-cnn", "pipeline,cut=[dense1]", "pipeline,cut=[conv2,dropout1]"},
        {"mnist-cnn-wide", "pipeline,cut=[conv3]", "pipeline,cut=[conv2,dense2]"},
        {"mnist-mlp", "pipeline,cut=[dense2]", NULL},
        {"sst2-lstm", "pipeline,cut=[lstm1]", "pipeline,cut=[dropout1,last1]"},
        {"everything", "pipeline,cut=[trunk]", "pipeline,cut=[batch_norm1,dense1]"},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct job job;
        struct outcome alone;
        const char *name = cuts[i].family;
        family_job(&job, family_called(name), family_place);
        job_set(&job, "train.microbatches=5");
        find_alone(&job, &alone);
        job.settings.strategy = cuts[i].two;
        expect_hash(&job, &alone, 2, name);
        expect_hash(&job, &alone, 4, name);
        job.settings.strategy = "pipeline,stages=1";
        expect_hash(&job, &alone, 2, name);
        job.settings.strategy = "pipeline";
        expect_hash(&job, &alone, 1, name); /* all layers on one rank */
        expect_hash(&job, &alone, 2, name);
        if (strcmp(name, "mnist-cnn") == 0) { /* a stage without parameters */
            job.settings.strategy = "pipeline,cut=[dropout1,dense2]";
            expect_hash(&job, &alone, 3, name);
            expect_hash(&job, &alone, 6, name);
        }
        if (!cuts[i].three) continue;
        job.settings.strategy = cuts[i].three;
        expect_hash(&job, &alone, 3, name);
        expect_hash(&job, &alone, 6, name);
        job.settings.strategy = "pipeline,stages=3";
        expect_hash(&job, &alone, 3, name);
    }
}

static void options_keep_the_hash(void **state)
{
    (void)state;
    static const char *const variants[] = {
        "optimizer.clip_norm=0.5", "train.on_nonfinite=skip", "train.pass=2",          "train.pass=64",
        "train.batch=23",          "optimizer.ema=0.9",       "train.microbatches=11", "train.microbatches=2",
    };
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        for (int f = 0; f < 2; f++) {
            struct job job;
            struct outcome alone;
            family_job(&job, family_called(f ? "everything" : "mnist-cnn"), family_place);
            job_set(&job, "train.microbatches=7");
            job_set(&job, variants[i]);
            find_alone(&job, &alone);
            job.settings.strategy = f ? "pipeline,cut=[trunk]" : "pipeline,cut=[dense1]";
            expect_hash(&job, &alone, 2, variants[i]);
            expect_hash(&job, &alone, 4, variants[i]);
        }
}

/* Two recurrent layers, one on each side of the cut, over examples of all lengths; and values instead of
 * classes. */
static void sequences_and_values_cross(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *strategy;
    } models[] = {
        {"two-lstms",
         "name: two-lstms\nseed: 5\ndata: {train: {text: {path: train.tsv}}}\n"
         "layers: [embedding: 7, lstm: 8, dropout: 0.2, lstm: {units: 6, name: second}, last, dense: 2]\n"
         "optimizer: {rule: adam, rate: 1e-2}\ntrain: {batch: 17, microbatches: 5, steps: 5, log_every: 1}\n",
         "pipeline,cut=[second]"},
        {"values",
         "name: values\nseed: 5\ndata: {train: {csv: {path: values.csv, label: value}}}\n"
         "layers: [dense: {units: 9, activation: tanh}, dense: {units: 5, activation: tanh, name: behind}, "
         "dense: 1]\n"
         "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 1e-2}\n"
         "train: {batch: 13, microbatches: 4, steps: 5, log_every: 1}\n",
         "pipeline,cut=[behind]"},
        /* No gradient flows back to the first stage, which learns nothing. */
        {"nothing-to-learn",
         "name: nothing-to-learn\nseed: 5\ndata: {train: {csv: {path: values.csv, label: value}}}\n"
         "layers: [tanh, sigmoid, dense: {units: 9, name: learns}, tanh, dense: 1]\n"
         "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 1e-2}\n"
         "train: {batch: 13, microbatches: 4, steps: 5, log_every: 1}\n",
         "pipeline,cut=[learns]"},
    };
    char path[SCRATCH_PATH], name[32], table[4096] = "a,b,y\n";
    for (int i = 0; i < 60; i++)
        snprintf(table + strlen(table), sizeof table - strlen(table), "%g,%g,%g\n", i * 0.1, sin(i),
                 cos(i * 0.3));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "values.csv"), table, strlen(table)));
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct job job;
        struct outcome alone;
        snprintf(name, sizeof name, "%s.yaml", models[i].name);
        scratch_join(path, family_place, name);
        must_train(tr_file_write_atomic(NULL, path, models[i].text, strlen(models[i].text)));
        job_begin(&job, path);
        find_alone(&job, &alone);
        job.settings.strategy = models[i].strategy;
        expect_hash(&job, &alone, 2, models[i].name);
        expect_hash(&job, &alone, 4, models[i].name);
    }
}

/* Saved half-way under one strategy, taken up under another and by another number of ranks. */
static void checkpoints_do_not_know_stages(void **state)
{
    (void)state;
    static const struct {
        int before;
        const char *first;
        int after;
        const char *second;
    } runs[] = {
        {2, "pipeline,cut=[dense1]", 1, NULL},
        {1, NULL, 4, "pipeline,cut=[dense1]"},
        {4, "pipeline,cut=[conv2]", 3, "allreduce"},
        {3, "pipeline,cut=[conv2,dense1]", 2, "pipeline,cut=[dense2]"},
        {3, "allreduce", 2, "pipeline"},
    };
    for (int f = 0; f < 2; f++) {
        struct job job;
        struct outcome alone;
        family_job(&job, family_called(f ? "everything" : "mnist-cnn"), family_place);
        job_set(&job, "train.microbatches=4");
        job_set(&job, "optimizer.ema=0.9");
        job.settings.steps = 6;
        find_alone(&job, &alone);
        job.settings.set = job.set;
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
            struct rank ranks[RANKS];
            char out[SCRATCH_PATH + 64], how[200];
            bool named = runs[i].first && strstr(runs[i].first, "cut"),
                 other = runs[i].second && strstr(runs[i].second, "cut");
            if (f && (named || other)) continue; /* its layers have other names */
            snprintf(out, sizeof out, "%s/run%d-%zu", family_place, f, i);
            snprintf(how, sizeof how, "%d ranks, then %d", runs[i].before, runs[i].after);
            struct tr_train_settings settings = job.settings;
            settings.out = out;
            settings.steps = 3;
            settings.strategy = runs[i].first;
            run_ranks(&settings, runs[i].before, false, ranks);
            expect_well(ranks, runs[i].before, how);
            settings.resume = out;
            settings.steps = 6;
            settings.strategy = runs[i].second;
            run_ranks(&settings, runs[i].after, true, ranks);
            expect_ranks(&alone, ranks, runs[i].after, how);
        }
    }
}

/* A slow rank and random delays change the time, not the bits. */
static void stragglers_keep_the_hash(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    family_job(&job, family_called("mnist-mlp"), family_place);
    find_alone(&job, &alone);
    job.settings.strategy = "pipeline";
    job.settings.delay_seed = 3;
    expect_hash(&job, &alone, 2, "delays");
}

/* What became infinite is named as one process names it, by every rank. */
static void the_culprit_is_named(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    family_job(&job, family_called("mnist-cnn"), family_place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "optimizer.rate=1e30");
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_ENONFINITE);
    assert_non_null(strstr(alone.message, "the first bad tensor is the "));
    job.settings.set = job.set;
    job.settings.strategy = "pipeline,cut=[dense1]";
    for (int apart = 0; apart < 2; apart++) {
        run_ranks(&job.settings, 4, apart, ranks);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(ranks[r].outcome.status, TR_ENONFINITE);
            assert_string_equal(ranks[r].outcome.message, alone.message);
        }
    }
}

/* ---- what is refused ---- */

/* The message has both; a list of layers is its end. */
static void refused(const char *family, const char *strategy, const char *set, int size, const char *first,
                    const char *second)
{
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, family_called(family), family_place);
    job_set(&job, "train.microbatches=4");
    if (set) job_set(&job, set);
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    run_ranks(&job.settings, size, false, ranks);
    for (int r = 0; r < size; r++) {
        assert_int_equal(ranks[r].outcome.status, TR_EINVAL);
        const char *message = ranks[r].outcome.message, *at = strstr(message, second);
        if (!strstr(message, first) || !at || (strstr(second, ": ") && strcmp(at, second) != 0))
            fail_msg("\"%s\" lacks \"%s\" or \"%s\"", message, first, second);
    }
}

static void what_cannot_be_cut_is_refused(void **state)
{
    (void)state;
    const char *places = "may begin with: conv2, dense1, dropout1, dense2";
    refused("mnist-cnn", "pipeline,stages=2", NULL, 3, "3 ranks are not a multiple of 2 stages",
            "start 2 or 4");
    refused("mnist-cnn", "pipeline,stages=4", NULL, 2, "2 ranks are not a multiple of 4 stages", "start 4");
    refused("mnist-cnn", "pipeline,stages=6", NULL, 6, "5 stages at most, here are 6", places);
    refused("mnist-mlp", "pipeline,stages=2", "layers=[{dense: 10}]", 2, "1 stages at most, here are 2",
            "may begin with: none");
    refused("mnist-cnn", "pipeline,cut=[dense3]", NULL, 2, "layer \"dense3\", which there is not", places);
    refused("mnist-cnn", "pipeline,cut=[conv1]", NULL, 2, "with which the first stage begins", places);
    refused("mnist-cnn", "pipeline,cut=[dense1,conv2]", NULL, 3, "\"conv2\" after \"dense1\"",
            "in their order");
    refused("mnist-cnn", "pipeline,cut=[max_pool1]", NULL, 2, "relu of \"conv1\"", places);
    refused("mnist-cnn", "pipeline,stages=3,cut=[dense1]", NULL, 3, "cut names 1 layers", "is 3; name 2,");
    refused("mnist-cnn", "pipeline,stages=2,cut=[conv2,dense1]", NULL, 2, "cut names 2 layers",
            "is 2; name 1,");
    refused("mnist-cnn", "pipeline,stages=3,cut=[conv2,dense1,dense2]", NULL, 3, "cut names 3 layers",
            "is 3; name 2,");
    refused(
        "mnist-cnn", "pipeline,cut=[flat,last]",
        "layers=[{conv: {filters: 3, kernel: 3}}, {flatten: {name: flat}}, {dense: {units: 9, name: last}}, "
        "{dense: 10}]",
        3, "cut leaves nothing to compute between \"flat\" and \"last\"", "");
    refused("mnist-cnn", "pipeline,cut=[dense1,dense1]", NULL, 3, "cut names \"dense1\" after \"dense1\"",
            "in their order");
    refused("everything", "pipeline,cut=[gelu1]", NULL, 2,
            "layer \"add1\" also takes the output of \"trunk\"", "stages may begin with");
    refused("mnist-cnn", "pipeline,stages=2", "train.microbatches=2", 6, "3 replicas of the pipeline share 2",
            "");
}

/* ---- parts ---- */

/* The least possible cost of the most expensive group, by trying everything. */
static double best_by_trial(const double *cost, int count, int groups)
{
    double sum = 0, best = INFINITY;
    if (groups == 1) {
        for (int i = 0; i < count; i++) sum += cost[i];
        return sum;
    }
    for (int i = 0; i <= count - groups; i++) {
        sum += cost[i];
        double rest = best_by_trial(cost + i + 1, count - i - 1, groups - 1);
        double most = sum > rest ? sum : rest;
        if (most < best) best = most;
    }
    return best;
}

static void balance_is_the_best(void **state)
{
    (void)state;
    srand(7);
    for (int trial = 0; trial < 300; trial++) {
        double cost[9];
        int count = 1 + rand() % 9, groups = 1 + rand() % count, first[10];
        for (int i = 0; i < count; i++) cost[i] = rand() % 5 == 0 ? 0 : rand() % 100;
        must_train(pipeline_balance(cost, count, groups, first));
        double most = 0;
        assert_int_equal(first[0], 0);
        assert_int_equal(first[groups], count);
        for (int g = 0; g < groups; g++) {
            double sum = 0;
            assert_true(first[g] < first[g + 1]);
            for (int i = first[g]; i < first[g + 1]; i++) sum += cost[i];
            if (sum > most) most = sum;
        }
        assert_true(most == best_by_trial(cost, count, groups));
    }
}

/* Units in flight are bounded by the stages ahead, and gradients that wait by the depth of the tree. */
static void memory_does_not_grow_with_microbatches(void **state)
{
    (void)state;
    struct job job;
    struct tr_job *opened;
    family_job(&job, family_called("mnist-cnn"), family_place);
    job_set(&job, "train.batch=100");
    job_set(&job, "train.microbatches=64");
    struct tr_job_settings settings = {.set = job.set, .set_count = job.settings.set_count};
    must_train(tr_job_open(job.settings.model, &settings, &opened));
    for (int s = 0; s < 4; s++) {
        struct stage_cell stage = {.stage = s,
                                   .stages = 4,
                                   .first_layer = s,
                                   .end_layer = s + 1,
                                   .first = 0,
                                   .end = 64,
                                   .per_unit = 1};
        struct stage_plan plan;
        stage_plan(opened, &stage, &plan);
        assert_int_equal(plan.units, 64);
        assert_int_equal(plan.depth, 2 * (4 - s) - 1);
        assert_int_equal(plan.flights, plan.depth + (s > 0));
        assert_int_equal(plan.nodes, 1);
        assert_int_equal(plan.extra, 6);
        assert_true(plan.stride >= plan.arena_end - plan.arena_begin + TR_PASS_SUMS);
        assert_true(plan.stride < plan.arena_end - plan.arena_begin + TR_PASS_SUMS + 16);
    }
    tr_job_destroy(&opened);
}

/* Times are times, the heavy layer is the heavy one, and nothing is changed. */
static void measuring_changes_nothing(void **state)
{
    (void)state;
    static const int bound[] = {0, 2, 4, 5, 6, 7};
    enum { COUNT = 5 };
    struct job job;
    family_job(&job, family_called("mnist-cnn"), family_place);
    job_set(&job, "layers[4].units=3000"); /* the third range */
    job_set(&job, "train.batch=80");
    job.settings.strategy = "pipeline";
    tr_trainer *trainer = job_trainer(&job);
    char before[65], after[65];
    struct pipeline_cost cost[COUNT];
    double heaviest = 0;
    must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_trainer_hash(trainer, before));
    must_train(pipeline_measure(trainer_strategy(trainer), 2, bound, COUNT, cost));
    must_train(tr_trainer_hash(trainer, after));
    assert_string_equal(before, after);
    for (int k = 0; k < COUNT; k++) {
        assert_true(cost[k].flow > 0 && cost[k].flow < 60);
        assert_true(cost[k].add >= 0 && cost[k].add < 60 && cost[k].update >= 0 && cost[k].update < 60);
        if (cost[k].flow + cost[k].update > heaviest) heaviest = cost[k].flow + cost[k].update;
    }
    assert_true(heaviest == cost[2].flow + cost[2].update);
    tr_trainer_destroy(&trainer);
}

/* Data are opened on a thread of their own, so that two threads may count down. */
static atomic_llong left;

static int refuse_one(size_t size, void *user)
{
    (void)size, (void)user;
    return atomic_fetch_sub(&left, 1) == 0;
}

/* Calls `run` with each of its allocations refused in turn, until none is: TR_ENOMEM, and nothing is left
   behind. */
static void refuse_each(tr_status (*run)(void *user), void *user)
{
    int64_t live = tr_alloc_live();
    bool refused = true;
    for (long long at = 0; refused; at++) {
        atomic_store(&left, at);
        tr_alloc_set_hook(refuse_one, NULL);
        tr_status status = run(user);
        tr_alloc_set_hook(NULL, NULL);
        refused = atomic_load(&left) < 0;
        assert_int_equal(status, refused ? TR_ENOMEM : TR_OK);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static tr_status measure(void *user)
{
    static const int bound[] = {0, 4, 10, 15};
    struct pipeline_cost cost[3];
    return pipeline_measure(trainer_strategy(user), 1, bound, 3, cost);
}

static tr_status balance(void *user)
{
    static const double cost[] = {1, 2, 3, 4};
    int *first = user;
    return pipeline_balance(cost, 4, 2, first);
}

static tr_status make_and_end(void *user)
{
    tr_trainer *trainer;
    tr_status status = tr_trainer_create(&((struct job *)user)->settings, &trainer);
    tr_trainer_destroy(&trainer);
    return status;
}

static void refused_memory_leaves_nothing(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, family_called("everything"), family_place);
    job_set(&job, "train.prefetch=0"); /* a reader would still allocate when the hook is gone */
    job.settings.strategy = "pipeline";
    tr_trainer *trainer = job_trainer(&job);
    must_train(measure(trainer)); /* the device keeps what it needs */
    refuse_each(measure, trainer);
    tr_trainer_destroy(&trainer);
    refuse_each(make_and_end, &job);
    int first[3];
    refuse_each(balance, first);
    assert_int_equal(first[1], 3);
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    struct job job;
    int64_t total = 0;
    family_job(&job, family_called("everything"), family_place);
    job.settings.strategy = "pipeline";
    tr_trainer *trainer = job_trainer(&job);
    for (int step = 0; step < 6; step++) {
        if (step == 2) total = tr_alloc_total();
        must_train(tr_trainer_step(trainer, NULL));
    }
    assert_int_equal(tr_alloc_total(), total);
    tr_trainer_destroy(&trainer);
}

static void ranks_divide_the_parameters(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, family_called("mnist-cnn"), family_place);
    job.settings.strategy = "pipeline";
    tr_trainer *trainer = job_trainer(&job);
    struct tr_placement placement;
    tr_strategy_placement(trainer_strategy(trainer), 0, &placement);
    assert_string_equal(placement.role, "stage");
    assert_int_equal(placement.end_layer, trainer_job(trainer)->model->layer_count);
    assert_int_equal(placement.updates, trainer_job(trainer)->model->arena_floats);
    assert_int_equal(placement.end_microbatch, trainer_job(trainer)->train.microbatches);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_one_hash),
        cmocka_unit_test(options_keep_the_hash),
        cmocka_unit_test(sequences_and_values_cross),
        cmocka_unit_test(checkpoints_do_not_know_stages),
        cmocka_unit_test(stragglers_keep_the_hash),
        cmocka_unit_test(the_culprit_is_named),
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(balance_is_the_best),
        cmocka_unit_test(memory_does_not_grow_with_microbatches),
        cmocka_unit_test(measuring_changes_nothing),
        cmocka_unit_test(refused_memory_leaves_nothing),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(ranks_divide_the_parameters),
    };
    return cmocka_run_group_tests_name("strategy.pipeline", tests, family_place_make, remove_place);
}
