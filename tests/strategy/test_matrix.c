/* One hash under every synchronous strategy, on 1 to 4 workers, over shared memory and over messages alone,
 * and from any of them to any other half-way.
 */
#include "support/ranks.h"

#include "strategy/class.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* A strategy that must print the hash of one process, and how many ranks it takes for so many workers. */
static const struct {
    const char *strategy;
    int servers, multiple; /* ranks beside the workers; workers come in multiples of this */
} synchronous[] = {
    {"allreduce", 0, 1},
    {"parameter-server,mode=sync,servers=1", 1, 1},
    {"parameter-server,mode=sync,servers=2", 2, 1},
    {"pipeline,stages=2", 0, 2}, /* on 4 workers a grid of 2 stages x 2 replicas */
};
#define STRATEGIES ((int)(sizeof synchronous / sizeof synchronous[0]))
#define WORKERS    4

/* A strategy that is added shows here until it is listed above, or says that its hash is another. */
static void every_synchronous_strategy_is_here(void **state)
{
    (void)state;
    for (int c = 0; tr_strategy_class_at(c); c++) {
        const char *name = tr_strategy_class_at(c)->name;
        bool listed = tr_strategy_class_at(c)->own_hash;
        for (int s = 0; s < STRATEGIES; s++)
            listed |= strncmp(synchronous[s].strategy, name, strlen(name)) == 0;
        if (!listed) fail_msg("the strategy \"%s\" is not in this test", name);
    }
}

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, "train.microbatches=5");
    job->settings.steps = 6;
    job->settings.set = job->set;
}

static void expect_one_hash(int family)
{
    struct job job;
    struct outcome alone;
    begin(&job, family);
    job_outcome(&job, &alone);
    if (alone.status != TR_OK) fail_msg("%s alone: %s", families[family].name, alone.message);
    for (int s = 0; s < STRATEGIES; s++)
        for (int workers = synchronous[s].multiple; workers <= WORKERS; workers += synchronous[s].multiple)
            for (int apart = 0; apart < 2; apart++) {
                struct rank ranks[RANKS];
                char how[200];
                int size = workers + synchronous[s].servers;
                snprintf(how, sizeof how, "%s, %s on %d workers%s", families[family].name,
                         synchronous[s].strategy, workers, apart ? " apart" : "");
                job.settings.strategy = synchronous[s].strategy;
                run_ranks(&job.settings, size, apart, ranks);
                expect_ranks(&alone, ranks, size, how);
                if (strcmp(ranks[0].outcome.losses, alone.losses) != 0)
                    fail_msg("%s: losses on the way differ", how);
            }
}

static void a_convolutional_network_has_one_hash(void **state)
{
    (void)state;
    expect_one_hash(0);
}

static void a_recurrent_network_has_one_hash(void **state)
{
    (void)state;
    expect_one_hash(3);
}

/* Batch normalization, averages, dropout, a residual connection, clipping by norm, ragged microbatches. */
static void a_network_of_everything_has_one_hash(void **state)
{
    (void)state;
    expect_one_hash(4);
}

/* Saved half-way under one strategy, taken up under another with another number of workers. */
static void checkpoints_go_from_any_to_any(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    begin(&job, 4);
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    for (int from = 0; from < STRATEGIES; from++)
        for (int to = 0; to < STRATEGIES; to++) {
            struct rank ranks[RANKS];
            struct tr_train_settings settings = job.settings;
            char out[SCRATCH_PATH + 64], how[200];
            int first = 2 + synchronous[from].servers, second = (from < to ? 4 : 2) + synchronous[to].servers;
            snprintf(out, sizeof out, "%s/%d-%d", family_place, from, to);
            snprintf(how, sizeof how, "%s on %d ranks, then %s on %d", synchronous[from].strategy, first,
                     synchronous[to].strategy, second);
            settings.out = out;
            settings.strategy = synchronous[from].strategy;
            settings.steps = 3;
            run_ranks(&settings, first, from % 2, ranks);
            expect_well(ranks, first, how);
            settings.resume = out;
            settings.strategy = synchronous[to].strategy;
            settings.steps = 6;
            run_ranks(&settings, second, to % 2, ranks);
            expect_ranks(&alone, ranks, second, how);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_synchronous_strategy_is_here),
        cmocka_unit_test(a_convolutional_network_has_one_hash),
        cmocka_unit_test(a_recurrent_network_has_one_hash),
        cmocka_unit_test(a_network_of_everything_has_one_hash),
        cmocka_unit_test(checkpoints_go_from_any_to_any),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
