/* Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011).
 *
 * There is no state: a number is a pure function of a key (seed and purpose) and a counter (its use), so
 * any worker can compute any number. All functions of keys and counters are pure. Any thread.
 */
#ifndef TR_BASE_RNG_H
#define TR_BASE_RNG_H

#include "trireme/status.h"

#include <stdint.h>

/* Purposes of numbers; part of the key, so that no two purposes share a stream. Values are part of the
   arithmetic contract: never renumber them. */
enum tr_rng_purpose {
    TR_RNG_INIT = 1,      /* counter: parameter number, element / 4 */
    TR_RNG_DROPOUT = 2,   /* counter: layer, step, example in the global batch, element / 4 */
    TR_RNG_ORDER = 3,     /* counter: epoch, round, half-block */
    TR_RNG_AUGMENT = 4,   /* counter: step, example in the global batch */
    TR_RNG_DELAY = 5,     /* counter: rank, step */
    TR_RNG_SPLIT = 6,     /* counter: 0, round, half-block */
    TR_RNG_SAMPLE = 7,    /* counter: epoch, position */
    TR_RNG_SWEEP = 8,     /* counter: point, field */
    TR_RNG_TEXT = 9,      /* counter: token after the prompt */
    TR_RNG_SEGMENTS = 10, /* counter: 0, round, half-block */
    TR_RNG_BURN_IN = 11   /* counter: pixel */
};

typedef struct tr_rng_key {
    uint32_t k0, k1;
} tr_rng_key;

/* The key for a purpose: seed folded with the purpose by one Philox block. */
tr_rng_key tr_rng_key_make(uint64_t seed, uint32_t purpose);

static inline void tr_rng_philox(tr_rng_key key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                                 uint32_t out[4])
{
    uint32_t k0 = key.k0, k1 = key.k1;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* 24 high bits as a float in [0, 1). Exact. */
static inline float tr_rng_unit(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

/* The number at `position` of a keyed permutation of [0, count): a Feistel network over the next even power
   of two with cycle walking. O(1) memory. count >= 1, position < count. */
uint64_t tr_rng_permute(tr_rng_key key, uint32_t epoch, uint64_t count, uint64_t position);

/* A permutation of one epoch, with the values of its rounds in a table. A round depends on one half of the
   position, so at most 6 * sqrt(4 * count) Philox blocks serve all positions. For many positions of one
   epoch; one user at a time. */
struct tr_permutation {
    tr_rng_key key;
    uint32_t epoch;
    uint64_t count;
    uint32_t *round; /* [6][2^half]; NULL where count is too large for a table */
    unsigned half;
};

#define TR_PERMUTATION_INIT                                                                                  \
    {                                                                                                        \
        .count = 0                                                                                           \
    }

/* Makes `permutation` that of an epoch. Does nothing where it is that already, and does not allocate where
   the count is the same. TR_ENOMEM leaves it unchanged. Release with tr_permutation_release(). */
tr_status tr_permutation_set(struct tr_permutation *permutation, tr_rng_key key, uint32_t epoch,
                             uint64_t count);
void tr_permutation_release(struct tr_permutation *permutation);

/* tr_rng_permute() for the epoch that was set: at `position`, and for [first, first + count) into
   out[count], which is several times faster than one by one. Any thread while none sets it. */
uint64_t tr_permutation_at(const struct tr_permutation *permutation, uint64_t position);
void tr_permutation_run(const struct tr_permutation *permutation, uint64_t first, int64_t count,
                        int64_t *out);

#endif
