/* Ranks of a pipeline touch memory of their own stages alone: pages of arenas that belong to others are not
 * there, not after making, steps, evaluation and saving either. */
#include "strategy/pipeline/pipeline.h"
#include "support/ranks.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

/* Large pages and neighbours on a page blur the bounds. */
#define BLUR  ((int64_t)5 << 20)
#define HEAVY 9000000 /* parameters of the stage with the heavy layer, at least */

/* Bytes of whole pages among floats [begin, end) of an arena that are in memory. */
static int64_t resident(const float *arena, int64_t begin, int64_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)(arena + begin) + page - 1) / page * page,
              to = (uintptr_t)(arena + end) / page * page;
    if (begin >= end || from >= to) return 0;
    size_t pages = (to - from) / page;
    unsigned char *there = calloc(pages, 1);
    assert_non_null(there);
    char *first = (char *)(uintptr_t)(arena + begin) + (from - (uintptr_t)(arena + begin));
    assert_int_equal(mincore(first, to - from, there), 0);
    int64_t bytes = 0;
    for (size_t i = 0; i < pages; i++) bytes += there[i] & 1 ? (int64_t)page : 0;
    free(there);
    return bytes;
}

/* Memory outside of what the rank keeps is not there; its own is, where the arena is in use. */
static void expect_own(const char *when, int rank, const char *what, const float *arena, int64_t begin,
                       int64_t end, int64_t floats)
{
    int64_t others = resident(arena, 0, begin) + resident(arena, end, floats),
            own = resident(arena, begin, end);
    if (others > BLUR)
        fail_msg("%s, rank %d: %lld bytes of %s of other stages are in memory", when, rank, (long long)others,
                 what);
    if (own < (end - begin) * (int64_t)sizeof(float) - 2 * 4096)
        fail_msg("%s, rank %d: of %lld bytes of %s only %lld are in memory", when, rank,
                 (long long)(end - begin) * 4, what, (long long)own);
}

static void look(const tr_trainer *trainer, const char *when)
{
    const struct pipeline *self = (const struct pipeline *)trainer_strategy(trainer);
    int64_t floats = trainer_job(trainer)->model->arena_floats;
    int rank = self->head.rank;
    for (int i = 0; i < TR_ARENAS; i++) {
        const float *arena = tr_variables_arena(trainer_variables(trainer), (enum tr_arena)i);
        bool parameters = i == TR_ARENA_PARAMETERS;
        if (!arena) continue;
        expect_own(when, rank, tr_arena_names[i], arena,
                   parameters ? self->plan.arena_begin : self->shard[rank],
                   parameters ? self->plan.arena_end : self->shard[rank + 1], floats);
    }
    /* For its norm, replicas show each other their shares of the gradient. */
    bool measured = tr_strategy_measures(trainer_job(trainer));
    expect_own(when, rank, "gradient", self->gradient.data,
               measured ? self->plan.arena_begin : self->shard[rank],
               measured ? self->plan.arena_end : self->shard[rank + 1], floats);
}

/* What is told about all ranks agrees with that. */
static void expect_told(const tr_trainer *trainer)
{
    const struct pipeline *self = (const struct pipeline *)trainer_strategy(trainer);
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    int64_t parameters = 0;
    must_train(tr_trainer_info(trainer, &info));
    for (int rank = 0; rank < self->head.size; rank++) {
        struct tr_train_placement placement = TR_TRAIN_PLACEMENT_INIT;
        must_train(tr_trainer_placement(trainer, rank, &placement));
        int64_t state = (self->shard[rank + 1] - self->shard[rank]) * (int64_t)sizeof(float);
        bool heavy = placement.parameters > HEAVY;
        if (rank % self->replicas == 0) parameters += placement.parameters;
        assert_true(placement.memory > placement.parameters * (int64_t)sizeof(float) + 3 * state);
        /* Parameters, gradients of two units and their sum, moments and averages; and activations. */
        assert_true(placement.memory <
                    (heavy ? 8 * (int64_t)sizeof(float) * placement.parameters : 0) + (24 << 20));
        if (rank == self->head.rank) assert_int_equal(placement.memory, info.memory);
    }
    assert_int_equal(parameters, info.parameters);
}

/* Nobody is given parts for the whole. */
static void expect_no_more(tr_trainer *trainer)
{
    const struct pipeline *self = (const struct pipeline *)trainer_strategy(trainer);
    const struct tr_model *model = trainer_job(trainer)->model;
    char hash[65];
    assert_int_equal(tr_trainer_hash(trainer, hash), TR_EINVAL);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        bool own = parameter->offset >= self->plan.arena_begin && parameter->offset < self->plan.arena_end;
        float *values = malloc((size_t)parameter->count * sizeof *values);
        assert_non_null(values);
        assert_int_equal(tr_trainer_parameter(trainer, parameter->name, values, parameter->count),
                         own ? TR_OK : TR_ENOTFOUND);
        free(values);
    }
}

static void *run_watched(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    for (int step = 0; step < 2; step++) must_train(tr_trainer_step(trainer, NULL));
    look(trainer, "after two steps");
    expect_told(trainer);
    expect_no_more(trainer);
    must_train(tr_trainer_run(trainer, NULL, NULL)); /* evaluates and saves */
    look(trainer, "after the run");
    must_train(tr_trainer_hash(trainer, rank->outcome.hash));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* A job most of whose parameters are in one layer: 9.4 million, 38 MB. */
static void heavy_job(struct job *job, char out[SCRATCH_PATH], const char *name)
{
    const struct family *family = families;
    while (strcmp(family->name, "mnist-cnn") != 0) family++;
    family_job(job, family, family_place);
    job_set(job, "layers[2].filters=32");
    job_set(job, "layers[4].units=6000");
    job_set(job, "train.batch=8");
    job_set(job, "train.microbatches=4");
    job_set(job, "train.steps=4");
    job_set(job, "train.evaluate_every=3");
    job_set(job, "optimizer.ema=0.9");
    job->settings.out = scratch_join(out, family_place, name);
}

static void run_stages(const char *strategy, int size, const char *set, const char *expected)
{
    struct job job;
    char out[SCRATCH_PATH];
    static int runs;
    char name[32];
    snprintf(name, sizeof name, "run%d", runs++);
    heavy_job(&job, out, name);
    if (set) job_set(&job, set);
    job.settings.strategy = strategy;
    job.settings.set = job.set;
    struct rank ranks[RANKS] = {{0}};
    run_ranks_by(run_watched, &job.settings, size, false, ranks);
    for (int r = 0; r < size; r++) assert_string_equal(ranks[r].outcome.hash, expected);
}

static void ranks_touch_their_own(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL, "optimizer.clip_norm=0.5"};
    for (int s = 0; s < 2; s++) {
        struct job job;
        struct outcome alone;
        char out[SCRATCH_PATH];
        heavy_job(&job, out, s ? "alone1" : "alone0");
        if (sets[s]) job_set(&job, sets[s]);
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        run_stages("pipeline,cut=[dense1]", 2, sets[s],
                   alone.hash); /* the heavy layer is in the second stage */
        run_stages("pipeline,cut=[dense2]", 2, sets[s], alone.hash); /* in the first */
        run_stages("pipeline,cut=[dense1]", 4, sets[s], alone.hash); /* with two replicas */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_touch_their_own),
    };
    return cmocka_run_group_tests_name("strategy.pipeline_memory", tests, family_place_make,
                                       family_place_remove);
}
