/* Weights that layers on different ranks share (weight tying): the rank with the lender has the parameter,
 * and sends a copy to the rank with the borrower before passes that use it.
 */
#ifndef TR_JOB_SHARED_WEIGHTS_H
#define TR_JOB_SHARED_WEIGHTS_H

#include "comm/comm.h"
#include "device/staging.h"
#include "nn/pass/pass.h"

/* Shared weights with one end in a range of layers. */
struct tr_shared_weight {
    struct tr_pass_tie tie; /* of any pass over the range; each pass has separate leaves */
    int peer;               /* the rank with the other end */
    struct tr_staging copy; /* of a borrower: its copy; of a lender: the parameter */
    tr_ticket *ticket;
};

struct tr_shared_weights {
    tr_comm *comm;
    tr_device *device;
    const struct tr_model *model;
    int tag, count;
    struct tr_shared_weight *item; /* [count], in the order that all ranks have */
};

/* Which rank has a layer, for the examples of this one. */
typedef int (*tr_layer_rank)(const void *user, int layer);

/* Lists the weights that the range of `pass` shares with others; calls `rank_of` with `user` immediately.
   The messages have `tag`. `comm`, `device` and the model are borrowed. Release with
   tr_shared_weights_release(), also after a failure. TR_ENOMEM. */
tr_status tr_shared_weights_make(tr_comm *comm, int tag, tr_device *device, const struct tr_model *model,
                                 const tr_pass *pass, tr_layer_rank rank_of, const void *user,
                                 struct tr_shared_weights *out);
/* Frees the memory. Messages must have ended. Accepts zeros. */
void tr_shared_weights_release(struct tr_shared_weights *shared);
/* Ends messages after a failure; false where their memory may be in use, so that it must not be freed. */
bool tr_shared_weights_cancel(struct tr_shared_weights *shared);

/* Makes a pass over the range compute with the copies. */
void tr_shared_weights_lend(const struct tr_shared_weights *shared, tr_pass *pass);
/* Lenders start to send from an arena of parameters (device memory), which must not change until
   tr_shared_weights_wait(); borrowers wait for their copies. Called by all ranks with an end of the same
   weights. */
tr_status tr_shared_weights_hand(struct tr_shared_weights *shared, const float *parameters);
tr_status tr_shared_weights_wait(struct tr_shared_weights *shared);

#endif
