/* Records how a trainer spends its time, from its creation to the trace file and the profile. */
#ifndef TR_TRAIN_RECORDING_H
#define TR_TRAIN_RECORDING_H

#include "train/observe/profile.h"
#include "train/observe/trace.h"

/* Plain memory, zeroed before tr_recording_begin(). */
struct tr_recording {
    tr_timeline *timeline; /* NULL: nothing is recorded */
    char *path;            /* of the trace, or NULL */
    bool profiles;
    struct tr_trace_clock clock;
    bool closed, written; /* the trace has all its steps; it is written, with those of all ranks */
    bool ended;
    struct tr_train_profile profile;
};

/* Makes a timeline if the settings ask for a trace or a profile. Released with tr_recording_release(). */
tr_status tr_recording_begin(struct tr_recording *recording, const struct tr_train_settings *settings);
/* All ranks have begun, at the same step; their settings must agree. A trace of earlier steps begins here.
   Collective. */
tr_status tr_recording_connect(struct tr_recording *recording, tr_comm *comm, int64_t step);
/* Moves the calling thread into the main lane, and out of it. Does nothing without a timeline. */
void tr_recording_enter(struct tr_recording *recording);
void tr_recording_leave(struct tr_recording *recording);
/* Before `step`: once all steps of the trace are done, it is written, so that a run of hours need not end
   first. Collective unless `alone` is set, when the root writes its own part and the rest follows at the
   end. Failures except TR_EPEER are retried at the end. */
tr_status tr_recording_step(struct tr_recording *recording, int64_t step, tr_comm *comm, bool alone);
/* The run is over: makes the profile and writes the trace unless that is done, once. Collective unless
   `alone` is set, when the others cannot be relied on. */
tr_status tr_recording_end(struct tr_recording *recording, const struct tr_model *model, tr_device *device,
                           tr_comm *comm, bool alone);
void tr_recording_release(struct tr_recording *recording);

#endif
