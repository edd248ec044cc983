/* Jobs on several ranks, which are threads of the test. */
#ifndef TESTS_SUPPORT_RANKS_H
#define TESTS_SUPPORT_RANKS_H

#include "comm/transport.h"
#include "support/training.h"

#include <pthread.h>

#define RANKS 4

/* A rank's part of a job, on a thread of its own. */
struct rank {
    const struct tr_train_settings *settings;
    tr_comm *comm;
    pthread_t thread;
    struct outcome outcome;
};

/* Trains as a rank and fills its outcome; its communicator is destroyed. For pthread_create(). */
void *run_rank(void *rank);
/* Runs a job on `size` ranks; all outcomes are returned. `apart`: every rank pretends to be on a host of its
 * own. */
void run_ranks(const struct tr_train_settings *settings, int size, bool apart, struct rank *ranks);
/* Every rank went well and has the expected hash. */
void expect_ranks(const struct outcome *expected, const struct rank *ranks, int size, const char *how);

#endif
