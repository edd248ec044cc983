/* Ranks that train together on devices with memory of their own: while they agree on a step, the device goes
 * forward with the next one. Numbers and words are those of ranks that do not, whatever comes of the step.
 */
#include "job/step/gradient_internal.h"
#include "strategy/class.h"
#include "strategy/values.h"
#include "support/ranks.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SILENT "train.log_every=0"
#define CLIP   "optimizer.clip_norm=1"
#define SKIP   "train.on_nonfinite=skip"

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, "train.microbatches=4");
    job_set(job, SILENT);
    job->settings.steps = 7;
    job->settings.set = job->set;
}

/* ---- what is begun ---- */

enum { FREE, FORBIDDEN, ASKED, SEES_LAYERS, SEES_UPDATES, STEPS = 4 };

struct watch {
    int how;
    bool begins;
};

/* The step that this rank has begun; -1: none. */
static int64_t begun_of(const tr_strategy *strategy)
{
    return strategy->replicas->gradient ? strategy->replicas->gradient->begun.step : -1;
}

static tr_status see_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    (void)user, (void)layer, (void)output, (void)count;
    return TR_OK;
}

static tr_status see_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    (void)user, (void)gradient, (void)begin, (void)end;
    return TR_OK;
}

/* Steps of a strategy that are allowed the next one; on all ranks but the first as `how` has it. */
static void *run_watched(void *user)
{
    struct rank *rank = user;
    const struct watch *watch = rank->user;
    const bool first = tr_comm_rank(rank->comm) == 0;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    tr_strategy *strategy = trainer_strategy(trainer);
    must_train(tr_trainer_step(trainer, NULL));
    assert_int_equal(begun_of(strategy), -1);
    bool sees = !first && (watch->how == SEES_LAYERS || watch->how == SEES_UPDATES);
    if (sees)
        tr_strategy_observe(strategy, TR_OBSERVER_PROBE,
                            (struct tr_strategy_observer){watch->how == SEES_LAYERS ? see_layer : NULL,
                                                          watch->how == SEES_UPDATES ? see_update : NULL,
                                                          NULL});
    for (int64_t step = 1; step < STEPS; step++) {
        struct tr_step_figures figures;
        bool allowed = first || watch->how != FORBIDDEN;
        int32_t request = !first && watch->how == ASKED && step == 2 ? 1 : 0;
        tr_strategy_allow_next(strategy, allowed);
        must_train(tr_strategy_step(strategy, step, request, &figures));
        bool begins = watch->begins && allowed && !sees && step + 1 < STEPS && figures.request == 0 &&
                      strategy->replicas->gradient; /* servers compute none */
        assert_int_equal(begun_of(strategy), begins ? step + 1 : -1);
    }
    must_train(tr_strategy_hash(strategy, rank->outcome.hash));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Also where only some ranks do it, and not where one of them has asked for something. */
static void the_next_step_goes_forward(void **state)
{
    static const struct {
        int family, ranks;
        const char *strategy, *device, *holder, *set;
        struct watch watch;
    } runs[] = {
        {0, 2, "allreduce", "shadow", NULL, NULL, {FREE, true}},
        {0, 2, "allreduce", "shadow", NULL, CLIP, {FREE, true}},
        {0, 3, "allreduce,bucket=0.01", "shadow", NULL, NULL, {FORBIDDEN, true}},
        {3, 2, "allreduce", "shadow", NULL, NULL, {ASKED, true}},
        {4, 4, "allreduce", "shadow", NULL, NULL, {FREE, true}},
        {0, 3, "parameter-server", "shadow", NULL, NULL, {FREE, true}},
        /* Who sees layers or updates sees those of one step at a time. */
        {0, 2, "allreduce", "shadow", NULL, NULL, {SEES_LAYERS, true}},
        {0, 2, "allreduce", "shadow", NULL, NULL, {SEES_UPDATES, true}},
        {0, 2, "allreduce", "shadow", NULL, "optimizer.sam=0.05", {FREE, false}}, /* two gradients */
        {0, 2, "allreduce", "shadow", NULL, "train.pass=1", {FREE, false}},       /* several passes */
        {0, 2, "allreduce", "shadow", "cpu", NULL, {FREE, false}},
        {0, 2, "allreduce", "cpu", NULL, NULL, {FREE, false}},
        {0, 2, "local-sgd,replicas=2", "shadow", NULL, NULL, {FREE, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct rank rank[RANKS] = {0};
        struct outcome expected;
        struct job job;
        begin(&job, runs[i].family);
        job.settings.steps = STEPS;
        if (runs[i].set) job_set(&job, runs[i].set);
        job.settings.device = "cpu";
        job_outcome(&job, &expected);
        job.settings.strategy = runs[i].strategy;
        job.settings.device = runs[i].device;
        job.settings.parameters_on = runs[i].holder;
        for (int r = 0; r < runs[i].ranks; r++) rank[r].user = (void *)(uintptr_t)&runs[i].watch;
        run_ranks_by(run_watched, &job.settings, runs[i].ranks, 0, rank);
        if (strncmp(runs[i].strategy, "local-sgd", 9) != 0)
            assert_string_equal(rank[0].outcome.hash, expected.hash);
    }
}

/* ---- whole runs ---- */

/* What all families compute with, and what a step may come to: as on the cpu device. */
static void runs_end_as_others_do(void **state)
{
    static const char bad_loss[] = "0,3e38,0,-3e38,0\n", bad_update[] = "1e10,1e18,0,1,0\n";
    static const struct {
        int family; /* -1: values */
        const char *line, *set[3];
        tr_status status;
    } runs[] = {
        {0, NULL, {NULL}, TR_OK},
        {1, NULL, {SKIP, NULL}, TR_OK},
        {2, NULL, {"train.evaluate_every=3", NULL}, TR_OK},
        {3, NULL, {"train.log_every=3", CLIP, NULL}, TR_OK},
        {4, NULL, {"optimizer.sam=0.05", NULL}, TR_OK},
        {5, NULL, {NULL}, TR_OK},
        {-1, bad_loss, {SILENT, SKIP, NULL}, TR_OK},
        {-1, bad_update, {SILENT, SKIP, CLIP}, TR_OK},
        {-1, bad_loss, {SILENT, NULL}, TR_ENONFINITE},
        {-1, bad_update, {SILENT, "optimizer.rate=3e38", NULL}, TR_ENONFINITE},
        {-1, "0,1,0,7,0\n", {SILENT, "optimizer.rate=3e38", NULL}, TR_ENONFINITE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct rank expected[RANKS], got[RANKS];
        struct job job;
        if (runs[i].family < 0)
            values_job(&job, family_place, runs[i].line);
        else
            begin(&job, runs[i].family);
        for (int k = 0; k < 3 && runs[i].set[k]; k++) job_set(&job, runs[i].set[k]);
        job.settings.set = job.set;
        job.settings.strategy = "allreduce";
        job.settings.device = "cpu";
        run_ranks(&job.settings, 2, 0, expected);
        job.settings.device = "shadow";
        run_ranks(&job.settings, 2, 0, got);
        for (int r = 0; r < 2; r++) {
            if (expected[r].outcome.status != runs[i].status)
                fail_msg("run %d: \"%s\"", (int)i, expected[r].outcome.message);
            assert_int_equal(got[r].outcome.status, expected[r].outcome.status);
            assert_string_equal(got[r].outcome.message, expected[r].outcome.message);
            assert_string_equal(got[r].outcome.losses, expected[r].outcome.losses);
            assert_int_equal(got[r].outcome.step, expected[r].outcome.step);
            assert_int_equal(got[r].outcome.warnings, expected[r].outcome.warnings);
            if (runs[i].status == TR_OK) assert_string_equal(got[r].outcome.hash, expected[r].outcome.hash);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_step_goes_forward),
        cmocka_unit_test(runs_end_as_others_do),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
