/* The log of an asynchronous run in its directory (strategy/updates/file.h), from which the run can be
 * replayed.
 *
 * Invariant: the newest checkpoint never has updates that the log lacks. When a run is resumed, the log is
 * cut at its checkpoint.
 */
#ifndef TR_TRAIN_UPDATES_H
#define TR_TRAIN_UPDATES_H

#include "strategy/updates/file.h"
#include "trireme/train.h"

struct tr_trainer;

struct trainer_updates {
    struct tr_update_log replayed;  /* the log that the run replays; empty: it is not a replay */
    struct tr_update_writer writer; /* on the root of an asynchronous run with a directory */
    char hash[TR_SHA256_TEXT];      /* of the parameters that the run began with */
    bool begun;                     /* its first session has been written */
    int64_t due;                    /* records gathered before they are written */
};

void trainer_updates_release(struct trainer_updates *updates);

/* Reads the log to replay, on every rank, if the settings give one. Collective. */
tr_status trainer_updates_load(struct tr_trainer *trainer, const struct tr_train_settings *settings);
/* Makes the log of simulated delays, if the settings want that, once there is a job. Local. */
tr_status trainer_updates_simulate(struct tr_trainer *trainer, const struct tr_train_settings *settings);
/* Checks that all ranks have the same log, or none. Collective. */
tr_status trainer_updates_agree(const struct tr_trainer *trainer);
/* Opens the log in the directory, which must exist: after the part that the resumed checkpoint covers.
   Where the run keeps none, an earlier run's log is removed. Local. */
tr_status trainer_updates_open(struct tr_trainer *trainer);
/* Writes gathered records, if there are enough; if that fails it is retried later. Local. */
void trainer_updates_note(struct tr_trainer *trainer);
/* Writes all, and the hash of the current parameters (NULL: not known); before a checkpoint of this state
   is written. TR_EIO, TR_ENOMEM. Local. */
tr_status trainer_updates_seal(struct tr_trainer *trainer, const char *hash);

#endif
