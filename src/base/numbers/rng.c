#include "base/numbers/rng.h"

#include "base/alloc.h"
#include "base/fail.h"

tr_rng_key tr_rng_key_make(uint64_t seed, uint32_t purpose)
{
    uint32_t block[4];
    tr_rng_key raw = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tr_rng_philox(raw, purpose, 0, 0, 0, block);
    return (tr_rng_key){block[0], block[1]};
}

/* ---- permutations ---- */

enum { ROUNDS = 6 };

/* Halves of more bits have no table: 6 * 2^12 numbers fit the second-level cache and serve 2^24 positions. */
#define TABLE_HALF 12

/* Bits of each of two halves that hold any number below count; at least one, so that rounds act. */
static unsigned half_of(uint64_t count)
{
    unsigned half = 1;
    while (half < 32 && ((uint64_t)1 << (2 * half)) < count) half++;
    return half;
}

static inline uint32_t round_value(tr_rng_key key, uint32_t epoch, uint32_t round, uint64_t right,
                                   unsigned half)
{
    uint32_t block[4];
    tr_rng_philox(key, epoch, round, (uint32_t)right, half, block);
    return block[0] & (uint32_t)(((uint64_t)1 << half) - 1);
}

uint64_t tr_rng_permute(tr_rng_key key, uint32_t epoch, uint64_t count, uint64_t position)
{
    const unsigned half = half_of(count);
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = position >> half, right = position & mask;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint64_t swapped = left ^ round_value(key, epoch, round, right, half);
            left = right;
            right = swapped;
        }
        position = left << half | right;
    } while (position >= count); /* walks the cycle; fewer than four rounds on average */
    return position;
}

static void fill_table(struct tr_permutation *permutation)
{
    const uint64_t size = (uint64_t)1 << permutation->half;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint64_t right = 0; right < size; right++)
            permutation->round[round * size + right] =
                round_value(permutation->key, permutation->epoch, round, right, permutation->half);
}

tr_status tr_permutation_set(struct tr_permutation *permutation, tr_rng_key key, uint32_t epoch,
                             uint64_t count)
{
    const unsigned half = half_of(count);
    if (permutation->count == count && permutation->epoch == epoch && permutation->key.k0 == key.k0 &&
        permutation->key.k1 == key.k1)
        return TR_OK;
    uint32_t *round = permutation->half == half ? permutation->round : NULL;
    if (!round && half <= TABLE_HALF && !(round = tr_alloc((size_t)ROUNDS << half, sizeof *round)))
        return TR_ENOMEM;
    if (round != permutation->round) tr_free(permutation->round);
    *permutation = (struct tr_permutation){key, epoch, count, round, half};
    if (round) fill_table(permutation);
    return TR_OK;
}

void tr_permutation_release(struct tr_permutation *permutation)
{
    tr_free(permutation->round);
    *permutation = (struct tr_permutation)TR_PERMUTATION_INIT;
}

uint64_t tr_permutation_at(const struct tr_permutation *permutation, uint64_t position)
{
    const unsigned half = permutation->half;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    const uint32_t *table = permutation->round;
    if (!table) return tr_rng_permute(permutation->key, permutation->epoch, permutation->count, position);
    do {
        uint64_t left = position >> half, right = position & mask;
        for (unsigned round = 0; round < ROUNDS; round++) {
            uint64_t swapped = left ^ table[((uint64_t)round << half) + right];
            left = right;
            right = swapped;
        }
        position = left << half | right;
    } while (position >= permutation->count);
    return position;
}
