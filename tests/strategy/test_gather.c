/* State that ranks have in parts, brought to the root, or to all: it is that of one process after as many
 * steps, to the bit, in whatever pieces; and training goes on as if nothing had happened. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "strategy/class.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define STEPS 3

/* Of one process, after STEPS steps. */
static struct {
    int64_t floats;
    float *arena[TR_ARENAS]; /* NULL: it keeps none */
    char hash[TR_SHA256_TEXT], last[TR_SHA256_TEXT];
} alone;

static void take_steps(tr_trainer *trainer)
{
    while (trainer_steps_done(trainer) < STEPS) must_train(tr_trainer_step(trainer, NULL));
}

static void know_alone(struct job *job)
{
    tr_trainer *trainer = job_trainer(job);
    take_steps(trainer);
    alone.floats = trainer_job(trainer)->model->arena_floats;
    for (int i = 0; i < TR_ARENAS; i++) {
        if (!tr_variables_arena(trainer_variables(trainer), (enum tr_arena)i)) continue;
        alone.arena[i] = tr_alloc((size_t)alone.floats, sizeof(float));
        assert_non_null(alone.arena[i]);
        must_train(tr_variables_store(trainer_variables(trainer), (enum tr_arena)i, alone.arena[i]));
    }
    must_train(tr_trainer_hash(trainer, alone.hash));
    must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_trainer_hash(trainer, alone.last));
    tr_trainer_destroy(&trainer);
}

static void forget_alone(void)
{
    for (int i = 0; i < TR_ARENAS; i++) {
        tr_free(alone.arena[i]);
        alone.arena[i] = NULL;
    }
}

static void expect_arena(tr_strategy *strategy, enum tr_arena arena, const char *when)
{
    float *got = tr_alloc((size_t)alone.floats, sizeof *got);
    assert_non_null(got);
    must_train(tr_variables_store(tr_strategy_variables(strategy), arena, got));
    if (memcmp(got, alone.arena[arena], (size_t)alone.floats * sizeof *got) != 0)
        fail_msg("%s, %s, rank %d of %d: %s differ", tr_strategy_name(strategy), when, strategy->rank,
                 strategy->size, tr_arena_names[arena]);
    tr_free(got);
}

/* In pieces whose bounds have nothing to do with parts of ranks. */
static void expect_pieces(tr_strategy *strategy, int64_t piece)
{
    for (int i = 0; i < TR_ARENAS; i++)
        for (int64_t at = 0, next; alone.arena[i] && at < alone.floats; at = next) {
            const float *values = NULL;
            next = alone.floats - at < piece ? alone.floats : at + piece;
            must_train(tr_strategy_collect(strategy, i, at, next, &values));
            if (strategy->rank > 0) continue;
            if (memcmp(values, alone.arena[i] + at, (size_t)(next - at) * sizeof *values) != 0)
                fail_msg("%s, %d ranks: %s from %lld on differ", tr_strategy_name(strategy), strategy->size,
                         tr_arena_names[i], (long long)at);
        }
}

static void *gather(void *user)
{
    struct rank *rank = user;
    char hash[TR_SHA256_TEXT];
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    tr_strategy *strategy = trainer_strategy(trainer);
    bool spread = tr_strategy_is_spread(strategy), root = strategy->rank == 0;
    take_steps(trainer);
    must_train(tr_strategy_hash(strategy, hash));
    assert_string_equal(hash, alone.hash);
    /* Of an optimizer's state others may have more than the root. */
    must_train(tr_strategy_gather_averages(strategy));
    if (!spread) expect_arena(strategy, TR_ARENA_EMA, "averages");
    must_train(tr_strategy_gather_parameters(strategy));
    if (root) expect_arena(strategy, TR_ARENA_PARAMETERS, "gathered");
    if (root) expect_arena(strategy, TR_ARENA_EMA, "gathered");
    tr_strategy_release(strategy);
    must_train(tr_strategy_gather(strategy));
    for (int i = 0; i < TR_ARENAS && root && !spread; i++)
        if (alone.arena[i]) expect_arena(strategy, (enum tr_arena)i, "all");
    assert_int_equal(tr_strategy_saves_pieces(strategy), spread);
    if (spread) expect_pieces(strategy, 977);
    if (spread) expect_pieces(strategy, alone.floats < TR_STRATEGY_PIECE ? alone.floats : TR_STRATEGY_PIECE);
    must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_strategy_hash(strategy, hash));
    assert_string_equal(hash, alone.last);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void state_comes_together(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int size;
    } cases[] = {
        {"allreduce", 3},         {"allreduce,bucket=0.004", 2}, {"parameter-server,servers=2", 4},
        {"pipeline,stages=2", 2}, {"pipeline,stages=3", 3},      {"pipeline,stages=2", 4},
    };
    struct job job;
    family_job(&job, &families[4], family_place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "optimizer={rule: adam, rate: 1e-3, amsgrad: true, ema: 0.9}");
    job.settings.set = job.set;
    job.settings.steps = 10;
    know_alone(&job);
    for (int i = 0; i < TR_ARENAS; i++) assert_non_null(alone.arena[i]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int apart = 0; apart < 2; apart++) {
            struct rank ranks[RANKS];
            memset(ranks, 0, sizeof ranks);
            job.settings.strategy = cases[i].strategy;
            job.settings.device = apart ? "shadow" : "cpu"; /* whose memory others may not touch */
            run_ranks_by(gather, &job.settings, cases[i].size, apart, ranks);
        }
    forget_alone();
}

/* A parameter that takes several pieces. */
static void large_parameters_come_piece_by_piece(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job_set(&job, "layers=[{flatten: null}, {dense: {units: 1502, activation: relu}}, {dense: 10}]");
    job_set(&job, "optimizer={rule: sgd, rate: 1e-2, ema: 0.5}");
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    job.settings.steps = 10;
    know_alone(&job);
    assert_true(784 * 1502 > TR_STRATEGY_PIECE);
    memset(ranks, 0, sizeof ranks);
    job.settings.strategy = "pipeline,stages=2";
    run_ranks_by(gather, &job.settings, 2, 1, ranks);
    forget_alone();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_comes_together),
        cmocka_unit_test(large_parameters_come_piece_by_piece),
    };
    return cmocka_run_group_tests_name("strategy.gather", tests, family_place_make, family_place_remove);
}
