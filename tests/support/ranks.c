#include "support/ranks.h"

#include "comm/transport.h"
#include "train/trainer_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void *run_rank(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        trainer_outcome(trainer, &rank->outcome);
        /* Only the chief tells what happens; the parameters are on every rank. */
        if (rank->outcome.status == TR_OK) must_train(tr_trainer_hash(trainer, rank->outcome.hash));
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void run_all(void *(*run)(void *), const struct tr_train_settings *const *settings, int size,
                    bool apart, struct rank *ranks)
{
    static const int hosts[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    tr_comm *comms[RANKS];
    assert_true(size <= RANKS);
    must_train(tr_comm_thread_create(size, apart ? hosts : NULL, &patience, comms));
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct rank){.settings = settings[r], .comm = comms[r], .user = ranks[r].user};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(ranks[r].thread, NULL);
}

void run_ranks_each(const struct tr_train_settings *const *settings, int size, bool apart, struct rank *ranks)
{
    run_all(run_rank, settings, size, apart, ranks);
}

void run_ranks_by(void *(*run)(void *), const struct tr_train_settings *settings, int size, bool apart,
                  struct rank *ranks)
{
    const struct tr_train_settings *each[RANKS];
    for (int r = 0; r < RANKS; r++) each[r] = settings;
    run_all(run, each, size, apart, ranks);
}

void run_ranks(const struct tr_train_settings *settings, int size, bool apart, struct rank *ranks)
{
    run_ranks_by(run_rank, settings, size, apart, ranks);
}

void expect_well(const struct rank *ranks, int size, const char *how)
{
    for (int r = 0; r < size; r++)
        if (ranks[r].outcome.status != TR_OK) fail_msg("%s, rank %d: %s", how, r, ranks[r].outcome.message);
}

void expect_ranks(const struct outcome *expected, const struct rank *ranks, int size, const char *how)
{
    expect_well(ranks, size, how);
    for (int r = 0; r < size; r++)
        if (strcmp(expected->hash, ranks[r].outcome.hash) != 0)
            fail_msg("%s, rank %d: hash %s, expected is %s", how, r, ranks[r].outcome.hash, expected->hash);
}
