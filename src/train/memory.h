/* What memory a run will take, and whether there is so much: found out before it is taken, since a system
 * that has given out too much kills without a word.
 *
 * The sums never exceed what will be taken by much: a run that fits is not refused for an estimate.
 */
#ifndef TR_TRAIN_MEMORY_H
#define TR_TRAIN_MEMORY_H

#include "base/memory.h"
#include "comm/comm.h"
#include "job/job.h"

/* In bytes. */
struct tr_train_memory {
    int64_t data;  /* unpacked, which the processes of a host share */
    int64_t ranks; /* parameters, moments, gradients and passes of all processes of this host */
    int64_t free;  /* before; INT64_MAX: not known */
    int processes; /* of this host */
};

/* What a rank of `ranks` takes at least for parameters, moments, gradients and passes, before anything of it
   is made; *shared of these are one copy for all ranks of a host. TR_EINVAL and the like for jobs that cannot
   be.
 */
tr_status tr_train_expect_memory(const struct tr_job *job, int ranks, int64_t *own, int64_t *shared);

/* What evaluations take beside: a pass of their own for the test or validation data, which must be open, and
   what of these is kept on the device. 0 where there are none. */
tr_status tr_train_evaluation_memory(tr_device *device, const struct tr_job *job, int64_t *bytes);

/* The bytes that the open data of a job take in memory. */
int64_t tr_train_data_memory(const struct tr_job *job);

/* Sums what the ranks of each host take: `own` each, and `shared` once; `room` is what was free before, as
   the first rank of the host saw it. TR_ENOMEM on all ranks where a host has less and `check`. Collective; a
   NULL `comm` is one process alone. `data`, part of `shared`, is told apart in *out. */
tr_status tr_train_admit_memory(tr_comm *comm, int64_t own, int64_t shared, int64_t data,
                                const struct tr_memory_room *room, bool check, struct tr_train_memory *out);

#endif
