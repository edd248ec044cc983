#include "strategy/replicas/apart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

void apart_expect_one_hash(struct job *job, int most, const char *name)
{
    struct outcome alone;
    job_outcome(job, &alone);
    if (alone.status != TR_OK) fail_msg("%s alone: %s", name, alone.message);
    for (int size = 1; size <= most; size++)
        for (int apart = 0; apart < 2; apart++) {
            struct rank ranks[RANKS];
            char how[160];
            snprintf(how, sizeof how, "%s, %s on %d ranks%s", name, job->settings.strategy, size,
                     apart ? " apart" : "");
            run_ranks(&job->settings, size, apart, ranks);
            expect_ranks(&alone, ranks, size, how);
            expect_same(&alone, &ranks[0].outcome, how); /* reports, too, are the same */
        }
}

void apart_train_to(struct job *job, const char *strategy, const char *out, bool resume, int64_t steps,
                    int size, struct outcome *outcome)
{
    struct rank ranks[RANKS];
    struct tr_train_settings settings = job->settings;
    char how[160];
    settings.strategy = strategy;
    settings.out = out;
    settings.resume = resume ? out : NULL;
    settings.steps = steps;
    settings.set = job->set;
    snprintf(how, sizeof how, "%s to step %d on %d ranks", strategy, (int)steps, size);
    run_ranks(&settings, size, size == 3, ranks);
    expect_well(ranks, size, how);
    *outcome = ranks[0].outcome;
}
