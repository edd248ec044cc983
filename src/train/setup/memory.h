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
    int64_t data;   /* unpacked, which the processes of a host share */
    int64_t ranks;  /* parameters, moments, gradients and passes of all processes of this host */
    int64_t free;   /* before; INT64_MAX: not known */
    int processes;  /* of this host */
    int64_t device; /* taken by them of this process' first device; 0: its memory is the host's */
};

/* What a rank of `ranks` takes at least, before anything of it is made. */
struct tr_train_expected {
    int64_t gradient;   /* of what computes: gradients and passes */
    int64_t states;     /* of what holds: moments and averages */
    int64_t parameters; /* of what holds; one copy for the ranks of a host, where that is its memory */
};

/* TR_EINVAL and the like for jobs that cannot be. */
tr_status tr_train_expect_memory(const struct tr_job *job, int ranks, struct tr_train_expected *out);

/* What a rank takes, and where it lies. Plain memory, zeroed to begin with. */
struct tr_train_demand {
    int64_t own;    /* of the host, for itself */
    int64_t shared; /* of the host, one copy for all its ranks */
    int64_t data;   /* part of these, told apart */
    struct tr_train_on {
        char device[64]; /* by which it was opened */
        int64_t bytes;   /* 0: not used */
        int64_t memory;  /* of the device in all */
    } on[2];             /* memory of devices: the one that computes, the one that holds */
};

/* Adds `bytes` to what lies on the device, or to `own`, where its memory is the host's. */
void tr_train_demand_add(struct tr_train_demand *demand, const tr_device *device, int64_t bytes);

/* What evaluations take beside: a pass of their own for the test or validation data, which must be open, and
   what of these is kept on the device. 0 where there are none. */
tr_status tr_train_evaluation_memory(tr_device *device, const struct tr_job *job, int64_t *bytes);

/* The bytes that the open data of a job take in memory. */
int64_t tr_train_data_memory(const struct tr_job *job);

/* Sums what the ranks of each host take of it, and of each of its devices; `room` is what was free before, as
   the first rank of the host saw it. TR_ENOMEM on all ranks where a host or a device has less and `check`.
   Collective; a NULL `comm` is one process alone. */
tr_status tr_train_admit_memory(tr_comm *comm, const struct tr_train_demand *demand,
                                const struct tr_memory_room *room, bool check, struct tr_train_memory *out);

#endif
