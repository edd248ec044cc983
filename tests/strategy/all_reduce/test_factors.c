/* Weights' gradients from factors: every rank's rows stay where they belong, whatever the passes; layers are
 * chosen where that moves fewer numbers; and what it takes, in memory and in numbers that are moved, is told.
 */
#include "support/ranks.h"

#include "base/alloc.h"
#include "comm/program.h"
#include "refuse.h"
#include "strategy/all_reduce/all_reduce.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROWS    84
#define INPUTS  24
#define CLASSES 3

/* No number of these is zero, so that each of them counts. */
static int make(void **state)
{
    char text[ROWS * INPUTS * 8], *at = text;
    scratch_place_make(state);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < INPUTS; k++)
            at += snprintf(at, 8, "%.3f,", (double)((i * 7 + k * 5 + i * k) % 23 + 1) / 8);
        at += snprintf(at, 8, "%d\n", i * 5 % CLASSES);
    }
    scratch_write("numbers.csv", text, (size_t)(at - text));
    scratch_write_text("numbers.yaml", "name: numbers\ndata: {train: {csv: {path: numbers.csv}}}\n"
                                       "layers: [{dense: {units: 16, activation: tanh}}, {dense: 3}]\n"
                                       "optimizer: {rule: adam, rate: 0.01}\n"
                                       "train: {batch: 28, microbatches: 7, steps: 5}\n");
    return 0;
}

static void begin(struct job *job, const char *const *set)
{
    static char model[SCRATCH_PATH];
    job_begin(job, scratch_join(model, scratch_place, "numbers.yaml"));
    job_set_all(job, set);
    job->settings.set = job->set;
}

/* Batches that the microbatches divide, so that a rank's rows end where the next one's begin, and others; in
   one pass, and in several, of which each adds its rows. */
static void rows_stay_in_their_places(void **state)
{
    static const char *const batches[] = {"train.batch=28", "train.batch=33"};
    static const char *const passes[] = {"train.pass=0", "train.pass=1", "train.pass=2"};
    (void)state;
    for (size_t b = 0; b < 2; b++)
        for (size_t p = 0; p < 3; p++) {
            const char *const set[] = {batches[b], passes[p], NULL};
            const struct outcome alone = begun_outcome(begin, set);
            for (int size = 2; size <= 4; size++)
                for (int apart = 0; apart <= 2; apart++) {
                    char what[96];
                    snprintf(what, sizeof what, "%s, %s, %d ranks, apart %d", batches[b], passes[p], size,
                             apart);
                    expect_hash_by(&alone, begin, set, "allreduce,factors=always", size, apart, what);
                }
        }
}

/* ---- what it takes ---- */

/* What a rank tells, and what its thread moved. */
struct taken {
    int64_t memory, shared;
    int64_t moved, of_others; /* floats */
};

static void count(void *user, enum tr_program_motion motion, int64_t floats)
{
    struct taken *taken = user;
    if (motion == TR_MOTION_ALL) taken->moved += floats;
    if (motion == TR_MOTION_OTHER) taken->of_others += floats;
}

static void *run_counted(void *user)
{
    struct rank *rank = user;
    struct taken *taken = rank->user;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    must_train(tr_trainer_info(trainer, &info));
    taken->memory = info.memory;
    tr_program_rehearse(count, taken);
    trainer_outcome(trainer, &rank->outcome);
    tr_program_rehearse(NULL, NULL);
    taken->shared = rank->outcome.rank[tr_comm_rank(rank->comm)].bytes_shared;
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Of one step. */
static void take(const char *strategy, const char *const *set, int size, int apart, struct taken taken[RANKS])
{
    struct job job;
    struct rank ranks[RANKS] = {0};
    begin(&job, set);
    job.settings.strategy = strategy;
    job.settings.steps = 1;
    memset(taken, 0, RANKS * sizeof *taken);
    for (int r = 0; r < RANKS; r++) ranks[r].user = &taken[r];
    run_ranks_by(run_counted, &job.settings, size, apart, ranks);
    expect_well(ranks, size, strategy);
}

/* 16 more rows take as much as 16 rows do: each is written by its rank, and read by all for their shares. */
static void what_rows_move_is_counted(void **state)
{
    static const char *const few[] = {"train.batch=16", "train.microbatches=4", "layers.0.units=64", NULL},
                             *const many[] = {"train.batch=32", "train.microbatches=4", "layers.0.units=64",
                                              NULL};
    enum { MORE = 16, SIZE = 4 }; /* ranks have a cache line of the second layer's columns at least */
    (void)state;
    for (int apart = 0; apart <= 2; apart++) {
        struct taken less[RANKS], more[RANKS];
        int64_t moved = 0, of_others = 0, shared = 0;
        /* Of both layers: inputs, of which each rank's shares need a part, and outputs, which all need. */
        const int64_t in = INPUTS + 64, out = 64 + CLASSES, neighbours = apart == 0 ? 3 : apart == 1 ? 0 : 1;
        take("allreduce,factors=always", few, SIZE, apart, less);
        take("allreduce,factors=always", many, SIZE, apart, more);
        for (int r = 0; r < SIZE; r++) {
            moved += more[r].moved - less[r].moved;
            of_others += more[r].of_others - less[r].of_others;
            shared += more[r].shared - less[r].shared;
            if (apart == 1) assert_int_equal(more[r].of_others, 0);
        }
        /* Between hosts a thread beside the rank may add the sums of the loss. */
        const int64_t others = neighbours * MORE / SIZE * (in + SIZE * out), about = apart ? 256 : 0,
                      all = 2 * MORE * (in + out) + 2 * MORE * (in + SIZE * out);
        assert_true(llabs(moved - all) <= about && llabs(of_others - others) <= about);
        assert_int_equal(shared, others * (int64_t)sizeof(float));
    }
}

/* Memory for a batch's rows of some inputs and of all outputs; the first rank of a host has the rows of all,
   too. */
static void memory_is_told(void **state)
{
    static const char *const set[] = {"train.batch=28", "train.microbatches=7", NULL};
    (void)state;
    for (int apart = 0; apart <= 2; apart++) {
        struct taken with[RANKS], without[RANKS];
        const int64_t scratch = 28 * (INPUTS + 16), copy = 28 * (INPUTS + 16 + 16 + CLASSES);
        take("allreduce,factors=always", set, 4, apart, with);
        take("allreduce,factors=never", set, 4, apart, without);
        for (int r = 0; r < 4; r++) {
            bool first = apart == 0 ? r == 0 : apart == 1 ? true : r % 2 == 0;
            int64_t expected = (scratch + (first ? copy : 0)) * (int64_t)sizeof(float);
            if (with[r].memory - without[r].memory != expected)
                fail_msg("apart %d: rank %d takes %lld bytes more, expected %lld", apart, r,
                         (long long)(with[r].memory - without[r].memory), (long long)expected);
        }
    }
}

/* For three floats of gradients that it spares one of factors may be moved. On one host a rank's share of the
   inputs is read, between hosts all are sent. */
static void they_are_taken_where_they_pay(void **state)
{
    static const struct {
        const char *units, *batch;
        int apart;
        bool pays;
    } cases[] = {
        /* 24 x 12 weights; 3 x 4 x (24 / 2 + 12) */
        {"layers.0.units=12", "train.batch=4", 0, true},
        {"layers.0.units=12", "train.batch=5", 0, false},
        {"layers.0.units=11", "train.batch=4", 0, false},
        {"layers.0.units=12", "train.batch=3", 1, false},
        /* 24 x 24; 3 x 4 x (24 + 24) */
        {"layers.0.units=24", "train.batch=4", 1, true},
        {"layers.0.units=24", "train.batch=5", 1, false},
        {"layers.0.units=23", "train.batch=4", 1, false},
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const char *const set[] = {cases[c].units, cases[c].batch, "train.microbatches=2", NULL};
        struct taken by_itself[RANKS], without[RANKS];
        take("allreduce", set, 2, cases[c].apart, by_itself);
        take("allreduce,factors=never", set, 2, cases[c].apart, without);
        if ((by_itself[0].memory > without[0].memory) != cases[c].pays)
            fail_msg("%s, %s, apart %d: %lld bytes, without factors %lld", cases[c].units, cases[c].batch,
                     cases[c].apart, (long long)by_itself[0].memory, (long long)without[0].memory);
    }
}

static void choosing_them_may_lack_memory(void **state)
{
    static const struct tr_comm_settings patience = {.timeout = 60, .patience = 60};
    (void)state;
    const char *const set[] = {"layers.0.units=12", NULL};
    tr_comm *comm[2];
    struct job job;
    struct tr_job *opened;
    begin(&job, set);
    const struct tr_job_settings settings = {.set = job.set, .set_count = job.settings.set_count};
    must_train(tr_job_open(job.settings.model, &settings, &opened));
    must_train(tr_comm_thread_create(2, NULL, &patience, comm));
    for (int64_t at = 0, done = 0; !done; at++) {
        struct all_reduce self = {.head = {.job = opened, .comm = comm[0], .size = 2},
                                  .options.factors = FACTORS_ALWAYS};
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = all_reduce_choose_factors(&self);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_int_equal(self.factors.count, 2);
        all_reduce_release_factors(&self);
        assert_int_equal(tr_alloc_live(), live);
    }
    for (int r = 0; r < 2; r++) tr_comm_abort(comm[r], "enough");
    for (int r = 0; r < 2; r++) tr_comm_destroy(&comm[r]);
    tr_job_destroy(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_in_their_places),
        cmocka_unit_test(what_rows_move_is_counted),
        cmocka_unit_test(memory_is_told),
        cmocka_unit_test(they_are_taken_where_they_pay),
        cmocka_unit_test(choosing_them_may_lack_memory),
    };
    return cmocka_run_group_tests_name("strategy.factors", tests, make, scratch_place_remove);
}
