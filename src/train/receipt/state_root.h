/* The root of the present state, by all ranks together, and the digests of batches. */
#ifndef TR_TRAIN_RECEIPT_STATE_ROOT_H
#define TR_TRAIN_RECEIPT_STATE_ROOT_H

#include "receipt/chain.h"
#include "trireme/train.h"

/* The root over the canonical bytes of what a checkpoint would keep now (receipt/canonical.h). Collective. */
tr_status trainer_state_root(tr_trainer *trainer, struct tr_sha256_sum *root);
/* Fills in the batches of `count` links. Local. */
tr_status trainer_digest_batches(tr_trainer *trainer, struct tr_chain_link *link, int64_t count);

#endif
