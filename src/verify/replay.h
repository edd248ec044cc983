/* Repeats a stretch of a run and compares it with the receipt. */
#ifndef TR_VERIFY_REPLAY_H
#define TR_VERIFY_REPLAY_H

#include "base/text/text.h"
#include "verify/stretches.h"

/* How far a verification has come; ends with the first outcome other than TR_VERIFIED. */
struct verification {
    const struct tr_verify_settings *settings;
    tr_verify_listener listener; /* or NULL */
    void *user;
    struct claim claim;
    struct stretches stretches;
    struct tr_verify_result result;
    struct tr_text text; /* why the outcome is none to be glad of */
};

/* Runs a stretch again: sets the result's outcome, and what goes with it. TR_EINTERRUPTED, TR_ENOMEM, TR_EIO
 * and the like where it could not be carried out. */
tr_status verify_replay(struct verification *verification, const struct stretch *stretch);

#endif
