/* Steps of several ranks that are not finite, on a device with memory of its own: where the device holds back
 * by itself what the host would have, and where the next step is under way, runs end as on the cpu device,
 * with the same parameters.
 */
#include "strategy/values.h"
#include "support/ranks.h"
#include "support/operations/shadow.h"

#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* The rank's part, and on the root, which has all of them, the hash of the parameters as they were left. */
static void *run_to_the_end(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    bool root = tr_comm_rank(rank->comm) == 0;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    trainer_outcome(trainer, &rank->outcome);
    if (root && !tr_strategy_is_spread(trainer_strategy(trainer)))
        must_train(tr_variables_hash(trainer_variables(trainer), rank->outcome.hash));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Returns the number of ranks that failed. */
static int expect_run_of_cpu(struct job *job, const char *strategy, int size)
{
    struct rank expected[RANKS], got[RANKS];
    int failed = 0;
    job->settings.set = job->set;
    job->settings.strategy = strategy;
    job->settings.device = "cpu";
    run_ranks_by(run_to_the_end, &job->settings, size, false, expected);
    job->settings.device = "shadow";
    run_ranks_by(run_to_the_end, &job->settings, size, false, got);
    for (int r = 0; r < size; r++) {
        const struct outcome *left = &expected[r].outcome, *right = &got[r].outcome;
        if (left->status != right->status || strcmp(left->message, right->message) != 0)
            fail_msg("%s, rank %d: \"%s\" instead of \"%s\"", strategy, r, right->message, left->message);
        assert_int_equal(left->step, right->step);
        assert_int_equal(left->warnings, right->warnings);
        assert_string_equal(left->losses, right->losses);
        assert_string_equal(left->hash, right->hash);
        failed += left->status == TR_ENONFINITE;
    }
    return failed;
}

static void runs_end_as_on_the_cpu(void **state)
{
    static const char bad_loss[] = "0,3e38,0,-3e38,0\n", bad_update[] = "1e10,1e18,0,1,0\n",
                      skip[] = "train.on_nonfinite=skip", clip[] = "optimizer.clip_norm=1",
                      fast[] = "optimizer.rate=3e38", silent[] = "train.log_every=0",
                      far[] = "optimizer.sam=1000", rates[] = "loss=poisson"; /* an exponential */
    static const struct {
        const char *line, *set[5];
        bool fails;
    } runs[] = {
        {bad_loss, {silent, NULL}, true},
        {bad_loss, {silent, clip, NULL}, true},
        {bad_loss, {silent, skip, clip, NULL}, false},
        /* the loss is finite, the norm of the gradient is not */
        {bad_update, {silent, skip, NULL}, false},
        {bad_update, {silent, fast, NULL}, true},
        /* the loss is finite, that beside the parameters is not */
        {"1,2,3,1,2\n", {silent, skip, far, rates}, false},
        {"1,2,3,1,2\n", {silent, far, rates, NULL}, true},
    };
    static const struct {
        const char *strategy;
        int ranks;
    } strategies[] = {
        {"allreduce", 2},
        {"parameter-server", 3},
        {"pipeline", 4},
        {"local-sgd,replicas=3,every=5", 2},
        {"gossip,replicas=2,every=2,consensus=2", 2},
        {"easgd,replicas=3,every=5", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++) {
            struct job job;
            values_job(&job, family_place, runs[i].line);
            for (int s = 0; runs[i].set[s]; s++) job_set(&job, runs[i].set[s]);
            int failed = expect_run_of_cpu(&job, strategies[k].strategy, strategies[k].ranks);
            if (failed != (runs[i].fails ? strategies[k].ranks : 0))
                fail_msg("%s, run %d: %d ranks failed", strategies[k].strategy, (int)i, failed);
        }
}

static int overtaken;

static void count_overtaken(void)
{
    overtaken++;
}

/* The steps of a round but its last one are judged with the next one under way; on one rank, since all would
   count. */
static void steps_of_a_round_follow_each_other(void **state)
{
    struct job job;
    struct outcome outcome;
    (void)state;
    values_job(&job, family_place, "1,2,3,1,2\n");
    job_set(&job, "train.steps=8");
    job.settings.set = job.set;
    job.settings.device = "shadow";
    job.settings.strategy = "local-sgd,replicas=2,every=4";
    overtaken = 0;
    shadow_goes_on = count_overtaken;
    job_outcome(&job, &outcome);
    shadow_goes_on = NULL;
    assert_int_equal(outcome.status, TR_OK);
    assert_int_equal(overtaken, 2 * 2 * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_end_as_on_the_cpu),
        cmocka_unit_test(steps_of_a_round_follow_each_other),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
