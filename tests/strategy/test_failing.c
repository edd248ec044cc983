/* Operations that fail: whichever it is of those that a rank computes in a run, under every strategy, the
 * rank tells of it, no rank hangs, and none goes on with what was not computed.
 */
#include "support/operations/failing.h"
#include "support/ranks.h"

#include "strategy/class.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* The device of the rank that rank->user points at fails. */
static void *run(void *user)
{
    static struct tr_device_class failing;
    struct rank *rank = user;
    const int *victim = rank->user;
    tr_trainer *trainer = NULL;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    tr_device *device = trainer_strategy(trainer)->device;
    const struct tr_device_class *class = device->class;
    if (tr_comm_rank(rank->comm) == *victim) {
        failing = failing_like(device);
        device->class = &failing;
    }
    trainer_outcome(trainer, &rank->outcome);
    device->class = class;
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static const struct {
    const char *strategy;
    bool waits; /* for every rank: they all end with the one that fails */
    int apart;  /* operations that are tried; each takes a moment, until the other rank finds out */
    const char *set;
} cases[] = {
    {"pipeline,stages=2", true, 1},
    {"allreduce", true, 7},
    {"allreduce,bucket=0.004", true, 7},
    {"allreduce,factors=always", true, 3, "optimizer.clip_norm=0"}, /* a norm wants whole gradients */
    {"parameter-server,servers=1", true, 7},
    {"parameter-server,mode=async", false, 7},
    {"local-sgd,every=1,replicas=2", true, 7},
    {"easgd,every=1,replicas=2", true, 7},
    {"gossip,every=1,consensus=2,replicas=2", true, 7},
};

static void try_each(size_t c, int victim)
{
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.batch=4");
    job_set(&job, "train.evaluate_every=0");
    job_set(&job, "optimizer={rule: adam, rate: 1e-3, ema: 0.9, clip_norm: 1}");
    if (cases[c].set) job_set(&job, cases[c].set);
    job.settings.set = job.set;
    job.settings.steps = 1;
    job.settings.strategy = cases[c].strategy;
    memset(ranks, 0, sizeof ranks);
    for (int r = 0; r < RANKS; r++) ranks[r].user = &victim;
    failing_operation = -1;
    atomic_store(&operation_calls, 0);
    run_ranks_by(run, &job.settings, 2, 0, ranks);
    expect_well(ranks, 2, cases[c].strategy);
    int operations = atomic_load(&operation_calls);
    for (failing_operation = victim; failing_operation < operations; failing_operation += cases[c].apart) {
        atomic_store(&operation_calls, 0);
        run_ranks_by(run, &job.settings, 2, 0, ranks);
        const struct outcome *outcome = &ranks[victim].outcome;
        /* How many operations an asynchronous rank computes depends on others. */
        if (!cases[c].waits && atomic_load(&operation_calls) <= failing_operation) continue;
        if (outcome->status != TR_EUNSUPPORTED || !strstr(outcome->message, " fails"))
            fail_msg("%s: operation %d of %d of rank %d fails, which ends with: %s, \"%s\"",
                     cases[c].strategy, failing_operation, operations, victim,
                     tr_status_name(outcome->status), outcome->message);
        if (cases[c].waits && ranks[1 - victim].outcome.status == TR_OK)
            fail_msg("%s: operation %d of %d of rank %d fails, but rank %d goes on", cases[c].strategy,
                     failing_operation, operations, victim, 1 - victim);
    }
}

static void every_failure_is_told(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int victim = 0; victim < 2; victim++) try_each(c, victim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_is_told),
    };
    return cmocka_run_group_tests_name("strategy.failing", tests, family_place_make, family_place_remove);
}
