/* The log of an asynchronous run in its directory (strategy/updates/file.h), from which the run can be
 * replayed.
 *
 * Invariant: the newest checkpoint never has updates that the log lacks. What the log has beyond the
 * checkpoint that a run is taken up from is cut off then.
 */
#ifndef TR_TRAIN_UPDATES_H
#define TR_TRAIN_UPDATES_H

#include "strategy/updates/file.h"
#include "trireme/train.h"

struct tr_trainer;

struct trainer_updates {
    struct tr_update_log replayed;  /* that the run goes through again; empty: it is a run of its own */
    struct tr_update_writer writer; /* on the root of an asynchronous run with a directory */
    char hash[TR_SHA256_TEXT];      /* of the parameters that the run began with */
    bool begun;                     /* its first session has been written */
    int64_t due;                    /* records that are gathered before they are written */
};

void trainer_updates_release(struct trainer_updates *updates);

/* Reads the log that the settings want replayed, on every rank, if they want one. Collective. */
tr_status trainer_updates_load(struct tr_trainer *trainer, const struct tr_train_settings *settings);
/* Makes the log that follows from simulated delays, if the settings want that, once there is a job. Local. */
tr_status trainer_updates_simulate(struct tr_trainer *trainer, const struct tr_train_settings *settings);
/* All ranks have the same, or none. Collective. */
tr_status trainer_updates_agree(const struct tr_trainer *trainer);
/* Opens the log in the directory, which is there: after what the checkpoint covers that the run goes on
   from. Where the run keeps none, one of an earlier run goes. Local. */
tr_status trainer_updates_open(struct tr_trainer *trainer);
/* Writes what has been gathered, if there is enough of it; what cannot be written now is later. Local. */
void trainer_updates_note(struct tr_trainer *trainer);
/* Writes all, and the hash of the parameters of this moment (NULL: it is not known); before a checkpoint of
   it is written. TR_EIO, TR_ENOMEM. Local. */
tr_status trainer_updates_seal(struct tr_trainer *trainer, const char *hash);

#endif
