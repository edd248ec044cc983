/* The chain of steps: a digest over each step's number, loss and batch, so that two runs with equal chains
 * after n steps had the same losses on the same examples in all steps.
 *
 *     begin  SHA-256(02 || settings || data || root)          the facts of the run, and its first state
 *     link   SHA-256(03 || before || step || steps || flags || loss || batch)
 *     batch  SHA-256 of the indices of its examples, in order
 *
 * Digests are 32 bytes, whole numbers 8 bytes, the loss the 4 bytes of a float32, all with the lowest byte
 * first; `step` is the number of steps done so far, `steps` the number in the link.
 */
#ifndef TR_RECEIPT_CHAIN_H
#define TR_RECEIPT_CHAIN_H

#include "base/numbers/hash.h"

/* The start of a run. */
struct tr_chain_begin {
    struct tr_sha256_sum settings, data, root;
};
tr_status tr_chain_begin(const struct tr_chain_begin *begin, struct tr_sha256_sum *out);

/* Some steps, made as one. */
struct tr_chain_link {
    int64_t step;  /* steps done after them */
    int64_t steps; /* how many */
    float loss;    /* the sum over their examples; all NaNs count as equal */
    bool skipped;  /* the update was skipped */
    struct tr_sha256_sum batch;
};
/* Adds a link to *chain. `hash` must be empty, and is again afterwards. */
tr_status tr_chain_add(tr_sha256 *hash, const struct tr_chain_link *link, struct tr_sha256_sum *chain);

#endif
