/* The root of the present state, computed by all ranks together. */
#ifndef TR_TRAIN_RECEIPT_STATE_ROOT_H
#define TR_TRAIN_RECEIPT_STATE_ROOT_H

#include "base/numbers/hash.h"
#include "trireme/train.h"

/* The root over the canonical bytes of a checkpoint of the present state (receipt/canonical.h).
   Collective. */
tr_status trainer_state_root(tr_trainer *trainer, struct tr_sha256_sum *root);

/* A leaf of the state. */
struct trainer_leaf {
    const char *name;    /* of its tensor, NULL: part of the head */
    const void *bytes;   /* borrowed for the call */
    const float *device; /* where they lie on the device; NULL of the head */
    size_t size;
};
/* Calls a function for all leaves of the present state, in order. For a single process with the whole
   state. */
typedef tr_status (*trainer_leaf_listener)(void *user, const struct trainer_leaf *leaf);
tr_status trainer_state_tell(tr_trainer *trainer, trainer_leaf_listener listener, void *user);

#endif
