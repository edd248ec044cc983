/* What one rank asks for, all ranks do: a request of any rank reaches every other under every strategy in
 * which the ranks step together, and the run ends as soon as it can. (That all strategies hear requests is
 * for the conformance suite to find out.)
 */
#include "support/ranks.h"

#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Steps that go on after a request, at most: until the ranks meet. */
static const struct {
    const char *strategy;
    int64_t steps;
} together[] = {
    {"allreduce", 1},
    {"pipeline,stages=3", 1},
    {"parameter-server,mode=sync,servers=1", 1},
    {"local-sgd,every=2,replicas=3", 2},
    {"easgd,replicas=3,every=2", 2},
    {"gossip,replicas=3,every=1,consensus=4", 4},
};

#define SIZE 3

/* Runs a job whose rank rank->user points at asks for the end before the first step. */
static void *run_and_ask(void *user)
{
    struct rank *rank = user;
    const int *asks = rank->user;
    tr_trainer *trainer;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        if (tr_comm_rank(rank->comm) == *asks) tr_trainer_stop(trainer);
        trainer_outcome(trainer, &rank->outcome);
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void any_rank_ends_the_run_for_all(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    for (size_t s = 0; s < sizeof together / sizeof together[0]; s++)
        for (int asks = 0; asks < SIZE; asks++) {
            struct rank ranks[RANKS];
            for (int r = 0; r < SIZE; r++) ranks[r].user = &asks;
            job.settings.strategy = together[s].strategy;
            run_ranks_by(run_and_ask, &job.settings, SIZE, false, ranks);
            for (int r = 0; r < SIZE; r++) {
                const struct outcome *outcome = &ranks[r].outcome;
                if (outcome->status != TR_EINTERRUPTED)
                    fail_msg("%s: rank %d asked for the end, but rank %d went on: %s", together[s].strategy,
                             asks, r, outcome->message);
                assert_int_equal(outcome->step, together[s].steps);
            }
        }
}

/* Whoever asks, also where ranks do not step together: the run ends, however many steps are left. */
static void any_rank_ends_an_asynchronous_run(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    job.settings.steps = 2000;
    job.settings.strategy = "parameter-server,mode=async";
    for (int asks = 0; asks < SIZE; asks++) {
        struct rank ranks[RANKS];
        for (int r = 0; r < SIZE; r++) ranks[r].user = &asks;
        run_ranks_by(run_and_ask, &job.settings, SIZE, false, ranks);
        if (ranks[0].outcome.status != TR_EINTERRUPTED)
            fail_msg("rank %d asked for the end, but the run went on: %s", asks, ranks[0].outcome.message);
        assert_in_range(ranks[0].outcome.step, 0, 1999);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_rank_ends_the_run_for_all),
        cmocka_unit_test(any_rank_ends_an_asynchronous_run),
    };
    return cmocka_run_group_tests_name("strategy.requests", tests, family_place_make, family_place_remove);
}
