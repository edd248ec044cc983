/* The memory that a run will take, and whether there is enough: determined in advance, since a system that
 * has promised too much kills processes without a message.
 *
 * The sums hardly exceed the real need: a run that fits is not refused because of an estimate.
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
    int64_t device; /* of this process' first device: taken by them; total, 0: it uses the host's memory */
};

/* The least memory of a rank of `ranks`, before anything is made. */
struct tr_train_expected {
    int64_t gradient;   /* of the computing device: gradients and passes */
    int64_t states;     /* of the holder: moments and averages */
    int64_t parameters; /* of the holder; one copy for the ranks of a host, if it uses the host's memory */
};

/* TR_EINVAL and the like for invalid jobs. */
tr_status tr_train_expect_memory(const struct tr_job *job, int ranks, struct tr_train_expected *out);

/* The memory of a rank, by place. Plain memory, zeroed to begin with. */
struct tr_train_demand {
    int64_t own;    /* of the host, for this rank */
    int64_t shared; /* of the host, one copy for all its ranks */
    int64_t data;   /* part of these, reported separately */
    struct tr_train_on {
        char device[64]; /* name by which it was opened */
        int64_t bytes;   /* 0: not used */
        int64_t memory;  /* total of the device */
    } on[2];             /* memory of devices: the one that computes, the one that holds */
};

/* Adds `bytes` to the device, or to `own`, if it uses the host's memory. */
void tr_train_demand_add(struct tr_train_demand *demand, const tr_device *device, int64_t bytes);

/* The memory of evaluations in addition: a separate pass for the test or validation data, which must be
   open, and their data kept on the device. 0 where there are none. */
tr_status tr_train_evaluation_memory(tr_device *device, const struct tr_job *job, int64_t *bytes);

/* Bytes of memory of the open data of a job. */
int64_t tr_train_data_memory(const struct tr_job *job);

/* Sums the memory of the ranks of each host, there and on each of its devices; `room` is the free memory
   before, as seen by the first rank of the host. TR_ENOMEM on all ranks where a host or a device has less
   and `check`. Collective; a NULL `comm` is a single process. */
tr_status tr_train_admit_memory(tr_comm *comm, const struct tr_train_demand *demand,
                                const struct tr_memory_room *room, bool check, struct tr_train_memory *out);

#endif
