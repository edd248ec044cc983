/* A tree of SHA-256 over leaves, as in RFC 6962: the digest of a leaf is SHA-256(00 || bytes), that of an
 * inner node SHA-256(01 || left || right), and the left part of n leaves has the largest power of two
 * below n of them. So a leaf cannot be mistaken for a node, nor a tree for one with another number of
 * leaves once that number is known; a proof that a leaf belongs to a root has at most 63 digests.
 */
#ifndef TR_RECEIPT_MERKLE_H
#define TR_RECEIPT_MERKLE_H

#include "base/numbers/hash.h"

/* The digest of a leaf's bytes. `hash` must be empty, and is again afterwards. */
tr_status tr_merkle_leaf(tr_sha256 *hash, const void *bytes, size_t size, struct tr_sha256_sum *out);

/* The root over the digests of `count` leaves; for none, SHA-256 of nothing. TR_ENOMEM. */
tr_status tr_merkle_root(const struct tr_sha256_sum *leaves, int64_t count, struct tr_sha256_sum *out);

/* A proof that a leaf belongs to a root: the sibling digests on the path, from the leaf on. */
#define TR_MERKLE_DEPTH 63
struct tr_merkle_proof {
    int64_t leaf, leaves; /* which one of how many */
    int length;
    struct tr_sha256_sum beside[TR_MERKLE_DEPTH];
};
/* That of leaf `leaf` of `count`. TR_ENOMEM. */
tr_status tr_merkle_prove(const struct tr_sha256_sum *leaves, int64_t count, int64_t leaf,
                          struct tr_merkle_proof *out);
/* The root to which the proof leads from the digest of the leaf, for the caller to compare. TR_EFORMAT
   where the proof does not fit that leaf and number of leaves. */
tr_status tr_merkle_follow(const struct tr_merkle_proof *proof, const struct tr_sha256_sum *leaf,
                           struct tr_sha256_sum *root);

#endif
