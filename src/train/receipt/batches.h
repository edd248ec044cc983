/* The digests of batches: the examples of each step of a chain. */
#ifndef TR_TRAIN_RECEIPT_BATCHES_H
#define TR_TRAIN_RECEIPT_BATCHES_H

#include "receipt/chain.h"
#include "trireme/train.h"

/* Fills in the batches of `count` links: SHA-256 over the numbers of the examples of a link's steps, each a
   little-endian int64, in the order of the rows. Local. TR_ENOMEM. */
tr_status trainer_digest_batches(tr_trainer *trainer, struct tr_chain_link *link, int64_t count);

#endif
