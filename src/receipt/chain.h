/* The chain of steps: a digest that takes in each step's number, loss and batch, so that two runs whose
 * chains are equal after n steps had the same losses on the same examples in all of them.
 *
 *     begin  SHA-256(02 || settings || data || root)          what the run is of, and its first state
 *     link   SHA-256(03 || before || step || steps || flags || loss || batch)
 *     batch  SHA-256 of the indices of its examples, in order
 *
 * Digests are 32 bytes, whole numbers 8 bytes, the loss the 4 bytes of a float32, all with the lowest byte
 * first; `step` is the number of steps done then, `steps` how many the link is of.
 */
#ifndef TR_RECEIPT_CHAIN_H
#define TR_RECEIPT_CHAIN_H

#include "base/numbers/hash.h"

/* The start of a run. */
struct tr_chain_begin {
    struct tr_sha256_sum settings, data, root;
};
tr_status tr_chain_begin(const struct tr_chain_begin *begin, struct tr_sha256_sum *out);

/* Some steps that were made as one. */
struct tr_chain_link {
    int64_t step;  /* steps done after them */
    int64_t steps; /* how many */
    float loss;    /* the sum over their examples; any NaN counts as one and the same */
    bool skipped;  /* the update was left out */
    struct tr_sha256_sum batch;
};
/* Adds a link to *chain. `hash` is one that nothing was added to, and is so again. */
tr_status tr_chain_add(tr_sha256 *hash, const struct tr_chain_link *link, struct tr_sha256_sum *chain);

#endif
