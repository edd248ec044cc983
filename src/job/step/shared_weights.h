/* Weights that layers on different ranks share (weight tying): the rank with the lender has the parameter,
 * and hands a copy to the rank with the borrower whenever passes are about to compute with it.
 */
#ifndef TR_JOB_SHARED_WEIGHTS_H
#define TR_JOB_SHARED_WEIGHTS_H

#include "comm/comm.h"
#include "device/staging.h"
#include "nn/pass/pass.h"

/* One that a range of layers has an end of. */
struct tr_shared_weight {
    struct tr_pass_tie tie; /* of any pass over the range; leaves are each pass's own */
    int peer;               /* the rank with the other end */
    struct tr_staging copy; /* of a borrower its own; of a lender over the parameter */
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

/* Lists what the range of `pass` shares with others; `rank_of` is called with `user` now. The messages have
   `tag`. `comm`, `device` and the model are borrowed. Released with tr_shared_weights_release(), also after a
   failure. TR_ENOMEM. */
tr_status tr_shared_weights_make(tr_comm *comm, int tag, tr_device *device, const struct tr_model *model,
                                 const tr_pass *pass, tr_layer_rank rank_of, const void *user,
                                 struct tr_shared_weights *out);
/* Frees the memory. Messages must have ended. Accepts zeros. */
void tr_shared_weights_release(struct tr_shared_weights *shared);
/* Ends messages after a failure; false where the memory may still be used, so that it must be left. */
bool tr_shared_weights_cancel(struct tr_shared_weights *shared);

/* Has a pass over the range compute with the copies. */
void tr_shared_weights_lend(const struct tr_shared_weights *shared, tr_pass *pass);
/* Lenders start to send from an arena of parameters (device memory), which must not change until
   tr_shared_weights_wait(); borrowers wait for their copies. All ranks with an end of the same weights. */
tr_status tr_shared_weights_hand(struct tr_shared_weights *shared, const float *parameters);
tr_status tr_shared_weights_wait(struct tr_shared_weights *shared);

#endif
