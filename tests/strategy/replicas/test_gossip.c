/* Gossip: each replica goes to the ranks that average with it, to each once, and to no others; a round ends
 * with the average of all; the memory is that of the replicas that a rank looks at.
 */
#include "support/ranks.h"

#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define REPLICAS   8
#define PARAMETERS (784 * 50 + 50 + 500 + 10)

static void begin(struct job *job, const char *strategy)
{
    family_job(job, &families[2], family_place);
    job_set(job, "train.microbatches=8");
    job_set(job, "train.log_every=1");
    job->settings.set = job->set;
    job->settings.strategy = strategy;
}

/* Whether replicas of the ring average with each other. */
static bool near(int r, int s, int neighbours)
{
    int apart = abs(r - s);
    return apart <= neighbours || REPLICAS - apart <= neighbours;
}

/* Whether a rank of `size`, which have as many replicas each, averages with a replica. */
static bool needs(int rank, int size, int replica, int neighbours)
{
    const int own = REPLICAS / size;
    for (int r = rank * own; r < (rank + 1) * own; r++)
        if (near(r, replica, neighbours)) return true;
    return false;
}

struct told {
    int64_t memory;
};

static void *run_told(void *user)
{
    struct rank *rank = user;
    struct told *told = rank->user;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    must_train(tr_trainer_info(trainer, &info));
    told->memory = info.memory;
    trainer_outcome(trainer, &rank->outcome);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* After `steps` steps, of which the last one ends with the average of all. */
static void run(const char *strategy, int64_t steps, int size, struct rank ranks[RANKS],
                struct told told[RANKS])
{
    struct job job;
    begin(&job, strategy);
    job.settings.steps = steps;
    for (int r = 0; r < RANKS; r++) ranks[r].user = &told[r];
    run_ranks_by(run_told, &job.settings, size, 1, ranks);
    expect_well(ranks, size, strategy);
}

/* Of an exchange, by runs of five steps and of three; and the rows of old parameters. */
static void replicas_go_where_they_are_needed(void **state)
{
    static const int sizes[] = {2, 4, 8}, neighbours[] = {1, 2, 3, 4, 100};
    (void)state;
    for (int n = 0; n < 5; n++)
        for (int i = 0; i < 3; i++) {
            struct rank longer[RANKS] = {0}, shorter[RANKS] = {0};
            struct told told[RANKS], one[RANKS];
            char strategy[80];
            snprintf(strategy, sizeof strategy, "gossip,replicas=8,consensus=100,neighbours=%d",
                     neighbours[n]);
            run(strategy, 5, sizes[i], longer, told);
            run("gossip,replicas=8,consensus=100", 3, sizes[i], shorter, one);
            run(strategy, 3, sizes[i], shorter, told);
            for (int r = 0; r < sizes[i]; r++) {
                const struct tr_train_rank *with = &longer[0].outcome.rank[r],
                                           *without = &shorter[0].outcome.rank[r];
                int sent = 0, received = 0, rows = 0, few = 0;
                const int own = REPLICAS / sizes[i];
                for (int s = 0; s < REPLICAS; s++) {
                    rows += needs(r, sizes[i], s, neighbours[n]);
                    few += needs(r, sizes[i], s, 1);
                    if (s / own != r) received += needs(r, sizes[i], s, neighbours[n]);
                    for (int other = 0; other < sizes[i] && s / own == r; other++)
                        sent += other != r && needs(other, sizes[i], s, neighbours[n]);
                }
                double floats =
                           (double)(with->bytes_sent - without->bytes_sent) / 2 / sizeof(float) / PARAMETERS,
                       came = (double)(with->bytes_received - without->bytes_received) / 2 / sizeof(float) /
                              PARAMETERS,
                       room = (double)(told[r].memory - one[r].memory) / sizeof(float) / PARAMETERS;
                if (fabs(floats - sent) > 0.05 || fabs(came - received) > 0.05 ||
                    fabs(room - rows + few) > 0.02)
                    fail_msg(
                        "%s, rank %d of %d: %.3f replicas sent instead of %d, %.3f received instead of %d, "
                        "%.3f more kept instead of %d",
                        strategy, r, sizes[i], floats, sent, came, received, room, rows - few);
            }
        }
}

/* A round is all exchanges up to the average of all: only then there is one network to be reported. */
static void a_round_ends_with_the_average_of_all(void **state)
{
    static const struct {
        const char *strategy;
        uint64_t reports; /* of 13 steps */
    } cases[] = {{"gossip,replicas=2,every=2,consensus=3", 3},
                 {"gossip,replicas=2,every=1,consensus=13", 1},
                 {"gossip,replicas=2,every=3,consensus=1", 5},
                 {"gossip,replicas=2", 2}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct job job;
        struct outcome outcome;
        begin(&job, cases[c].strategy);
        job.settings.steps = 13;
        job_outcome(&job, &outcome);
        must_train(outcome.status);
        if (outcome.steps_seen != cases[c].reports)
            fail_msg("%s: %d reports", cases[c].strategy, (int)outcome.steps_seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_go_where_they_are_needed),
        cmocka_unit_test(a_round_ends_with_the_average_of_all),
    };
    return cmocka_run_group_tests_name("strategy.gossip", tests, family_place_make, family_place_remove);
}
