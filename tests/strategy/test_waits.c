/* How often the host waits for a device with memory of its own in a step of several ranks: where a wait is
 * added, this fails. What is counted are waits for something that is not done yet, and who asks twice whether
 * it is counts as one who waits.
 */
#include "support/ranks.h"
#include "support/operations/shadow.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define CLIP  "optimizer.clip_norm=1"
#define SKIP  "train.on_nonfinite=skip"
#define TRIES 30

/* Waits of all ranks in a run of so many steps. */
static long long waits_of(const char *strategy, int ranks, const char *holder, const char *set, int64_t steps)
{
    struct rank rank[RANKS];
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "train.log_every=0");
    job_set(&job, "train.evaluate_every=0");
    if (set) job_set(&job, set);
    job.settings.steps = steps;
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    job.settings.device = "shadow";
    job.settings.parameters_on = holder;
    atomic_store(&shadow_waits, 0);
    run_ranks(&job.settings, ranks, false, rank);
    expect_well(rank, ranks, strategy);
    return atomic_load(&shadow_waits);
}

static void no_more_than_is_needed(void **state)
{
    static const struct {
        const char *strategy;
        int ranks;
        const char *holder, *set;
        int waits; /* of all ranks, in 8 steps */
    } runs[] = {
        {"allreduce", 2, NULL, NULL, 32},
        {"allreduce,bucket=0.01", 2, NULL, NULL, 96},
        {"allreduce", 2, NULL, CLIP, 32},
        {"allreduce", 2, NULL, SKIP, 32},
        {"allreduce", 2, "cpu", NULL, 16},
        {"parameter-server", 3, NULL, NULL, 48},
        {"parameter-server", 3, NULL, CLIP, 48},
        {"pipeline", 2, NULL, NULL, 48},
        {"pipeline", 2, NULL, CLIP, 64},
        {"pipeline", 4, NULL, NULL, 128},
        {"local-sgd,replicas=2,every=8", 2, NULL, NULL, 28},
        {"local-sgd,replicas=2,every=1", 2, NULL, NULL, 112},
        {"local-sgd,replicas=2,every=8", 2, NULL, CLIP, 28},
        {"local-sgd,replicas=2,every=8", 2, NULL, SKIP, 28},
        {"gossip,replicas=2,every=2,consensus=4", 2, NULL, NULL, 34},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        /* Two buckets may come at once. A wait more on one rank makes 8 more, in every try; a rank that a
           busy machine holds up asks more often than it needs to, in some. */
        long long least = LLONG_MAX;
        for (int n = 0; n < TRIES && least > runs[i].waits + 4; n++) {
            long long fewer = waits_of(runs[i].strategy, runs[i].ranks, runs[i].holder, runs[i].set, 8),
                      more = waits_of(runs[i].strategy, runs[i].ranks, runs[i].holder, runs[i].set, 16);
            if (more - fewer < least) least = more - fewer;
        }
        if (least > runs[i].waits + 4)
            fail_msg("%s, %s: %lld waits in 8 steps, not %d", runs[i].strategy,
                     runs[i].set ? runs[i].set : "plain", least, runs[i].waits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_more_than_is_needed)};
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
