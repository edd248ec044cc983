#include "receipt/merkle.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>

static const uint8_t of_leaf = 0, of_node = 1;

tr_status tr_merkle_leaf(tr_sha256 *hash, const void *bytes, size_t size, struct tr_sha256_sum *out)
{
    tr_sha256_add(hash, &of_leaf, 1);
    tr_sha256_add(hash, bytes, size);
    return tr_sha256_take(hash, out);
}

/* *into may be one of the two. */
static tr_status join(tr_sha256 *hash, const struct tr_sha256_sum *left, const struct tr_sha256_sum *right,
                      struct tr_sha256_sum *into)
{
    tr_sha256_add(hash, &of_node, 1);
    tr_sha256_add(hash, left->byte, sizeof left->byte);
    tr_sha256_add(hash, right->byte, sizeof right->byte);
    return tr_sha256_take(hash, into);
}

/* Number of leaves in the left part. */
static int64_t split(int64_t count)
{
    int64_t left = 1;
    while (left < count - left) left *= 2;
    return left;
}

/* The root over [first, first + count), at least one. Recursion is as deep as the tree. */
static tr_status root_of(tr_sha256 *hash, const struct tr_sha256_sum *leaves, int64_t first, int64_t count,
                         struct tr_sha256_sum *out)
{
    struct tr_sha256_sum left, right;
    if (count == 1) {
        *out = leaves[first];
        return TR_OK;
    }
    int64_t half = split(count);
    TR_TRY(root_of(hash, leaves, first, half, &left));
    TR_TRY(root_of(hash, leaves, first + half, count - half, &right));
    return join(hash, &left, &right, out);
}

tr_status tr_merkle_root(const struct tr_sha256_sum *leaves, int64_t count, struct tr_sha256_sum *out)
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = count > 0 ? root_of(hash, leaves, 0, count, out) : tr_sha256_take(hash, out);
    tr_sha256_destroy(&hash);
    return status;
}

/* ---- proofs ---- */

static tr_status prove(tr_sha256 *hash, const struct tr_sha256_sum *leaves, int64_t first, int64_t count,
                       struct tr_merkle_proof *proof)
{
    if (count == 1) return TR_OK;
    int64_t half = split(count);
    bool is_left = proof->leaf < first + half;
    TR_TRY(is_left ? prove(hash, leaves, first, half, proof)
                   : prove(hash, leaves, first + half, count - half, proof));
    struct tr_sha256_sum *beside = &proof->beside[proof->length++];
    return is_left ? root_of(hash, leaves, first + half, count - half, beside)
                   : root_of(hash, leaves, first, half, beside);
}

tr_status tr_merkle_prove(const struct tr_sha256_sum *leaves, int64_t count, int64_t leaf,
                          struct tr_merkle_proof *out)
{
    tr_sha256 *hash;
    assert(leaf >= 0 && leaf < count);
    *out = (struct tr_merkle_proof){.leaf = leaf, .leaves = count};
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = prove(hash, leaves, 0, count, out);
    tr_sha256_destroy(&hash);
    return status;
}

tr_status tr_merkle_follow(const struct tr_merkle_proof *proof, const struct tr_sha256_sum *leaf,
                           struct tr_sha256_sum *root)
{
    bool right[TR_MERKLE_DEPTH]; /* from the root down: the leaf is in the right part */
    int depth = 0;
    int64_t index = proof->leaf, count = proof->leaves;
    if (index < 0 || index >= count)
        return tr_fail(TR_EFORMAT, "a proof for leaf %" PRId64 " of %" PRId64, index, count);
    while (count > 1) {
        int64_t half = split(count);
        right[depth] = index >= half;
        index -= right[depth] ? half : 0;
        count = right[depth++] ? count - half : half;
    }
    if (depth != proof->length)
        return tr_fail(TR_EFORMAT,
                       "a proof of %d digests for leaf %" PRId64 " of %" PRId64 ", which takes %d",
                       proof->length, proof->leaf, proof->leaves, depth);
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    *root = *leaf;
    tr_status status = TR_OK;
    for (int i = 0; status == TR_OK && i < depth; i++) {
        const struct tr_sha256_sum *beside = &proof->beside[i];
        bool is_right = right[depth - 1 - i];
        status = is_right ? join(hash, beside, root, root) : join(hash, root, beside, root);
    }
    tr_sha256_destroy(&hash);
    return status;
}
