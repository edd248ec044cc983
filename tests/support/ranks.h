/* Jobs on several ranks, which are threads of the test. */
#ifndef TESTS_SUPPORT_RANKS_H
#define TESTS_SUPPORT_RANKS_H

#include "support/training.h"

#include "comm/comm.h"

#include <pthread.h>

#define RANKS 8

/* A rank's part of a job, on a thread of its own. */
struct rank {
    const struct tr_train_settings *settings;
    tr_comm *comm;
    pthread_t thread;
    struct outcome outcome; /* its hash is that of the rank's own parameters */
    void *user;             /* of run_ranks_by()'s function, kept */
};

/* Runs a job on `size` ranks; all outcomes are returned. `apart`: every rank pretends to be on a host of its
   own. The settings' `set` must be there already. */
void run_ranks(const struct tr_train_settings *settings, int size, bool apart, struct rank *ranks);
/* The same with a function of the test's own instead, which is given its rank, destroys its communicator and
   returns NULL. */
void run_ranks_by(void *(*run)(void *rank), const struct tr_train_settings *settings, int size, bool apart,
                  struct rank *ranks);
/* As run_ranks() with settings of each rank's own, [size]. */
void run_ranks_each(const struct tr_train_settings *const *settings, int size, bool apart,
                    struct rank *ranks);
/* Fails the test unless every rank went well and has the expected hash; `how` says what was run. */
void expect_ranks(const struct outcome *expected, const struct rank *ranks, int size, const char *how);
/* Fails the test unless every rank went well. */
void expect_well(const struct rank *ranks, int size, const char *how);

#endif
