/* Jobs on several ranks, which are threads of the test, or processes that it forks. */
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

/* Chooses threads or processes for later ranks. Processes share memory (comm/local): of their results only
   a rank's `outcome` returns, and memory of ranks_shared(). */
enum ranks_kind { RANKS_ARE_THREADS, RANKS_ARE_PROCESSES };
void ranks_become(enum ranks_kind kind);
bool ranks_are_processes(void);
/* Memory, zero, that all ranks of later runs and the test share. Release with ranks_unshare(). */
void *ranks_shared(size_t size);
void ranks_unshare(void *memory, size_t size);
/* A rank dies without notice: called by itself. Does not return in a process. */
void ranks_die(tr_comm *comm);

/* Runs a job on `size` ranks; all outcomes are returned. `apart`: 1, every rank pretends to be on a
   separate host; 2, two of them on each; which processes do not. The settings' `set` must be filled
   already. */
void run_ranks(const struct tr_train_settings *settings, int size, int apart, struct rank *ranks);
/* The same with a function of the test, which gets its rank, destroys its communicator and returns NULL. */
void run_ranks_by(void *(*run)(void *rank), const struct tr_train_settings *settings, int size, int apart,
                  struct rank *ranks);
/* As run_ranks() with separate settings for each rank, [size]. */
void run_ranks_each(const struct tr_train_settings *const *settings, int size, int apart, struct rank *ranks);
/* Fails the test unless every rank succeeded and has the expected hash; `how` describes the run. */
void expect_ranks(const struct outcome *expected, const struct rank *ranks, int size, const char *how);
/* Fails the test unless every rank succeeded. */
void expect_well(const struct rank *ranks, int size, const char *how);

/* Fails the test unless the job ends with the hash of `alone` on `size` ranks of a strategy; `apart` as for
   run_ranks(). */
void expect_hash_by(const struct outcome *alone, job_beginner *begin, const char *const *set,
                    const char *strategy, int size, int apart, const char *what);
/* Fails the test unless the job ends with the hash of `alone` on several ranks: all-reduce, two parameter
   servers, a pipeline. */
void expect_shared_hash(const struct outcome *alone, job_beginner *begin, const char *const *set,
                        const char *what);
/* The same for one process with another setting, on another device or instruction set. */
struct job_variant {
    const char *set, *device, *isa; /* the last two may be NULL */
};
void expect_variants(const struct outcome *alone, job_beginner *begin, const char *const *set,
                     const struct job_variant *variants, size_t count, const char *what);

#endif
