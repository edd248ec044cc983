/* Repeats a stretch of a run and compares it with the receipt. */
#ifndef TR_VERIFY_REPLAY_H
#define TR_VERIFY_REPLAY_H

#include "base/text/text.h"
#include "verify/stretches.h"

/* State of a verification; it ends with the first outcome other than TR_VERIFIED. */
struct verification {
    const struct tr_verify_settings *settings;
    tr_verify_listener listener; /* or NULL */
    void *user;
    struct claim claim;
    struct stretches stretches;
    struct tr_verify_result result;
    struct tr_text text; /* the reason of an outcome other than success */
};

/* Repeats a stretch: sets the result's outcome, and its details. TR_EINTERRUPTED, TR_ENOMEM, TR_EIO and
 * the like where it could not be carried out.
 */
tr_status verify_replay(struct verification *verification, const struct stretch *stretch);

#endif
