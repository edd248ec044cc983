#include "base/numbers/rng.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdbool.h>

tr_rng_key tr_rng_key_make(uint64_t seed, uint32_t purpose)
{
    uint32_t block[4];
    tr_rng_key raw = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tr_rng_philox(raw, purpose, 0, 0, 0, block);
    return (tr_rng_key){block[0], block[1]};
}

/* ---- permutations ---- */

enum { ROUNDS = 6 };

/* Halves with more bits have no table: 6 * 2^12 numbers fit the second-level cache and serve 2^24
   positions. */
#define TABLE_HALF 12

/* Bits of each of two halves, enough for any number below count; at least one, so that rounds have an
   effect. */
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
    } while (position >= count); /* walks along the cycle; fewer than four steps on average */
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

/* Walks at once: a walk is a chain of loads, each of which depends on the one before. */
enum { LANES = 8 };

/* One step of each of `lanes` walks, at most LANES. */
static inline void step(const struct tr_permutation *permutation, const int lanes, uint64_t *value)
{
    const unsigned half = permutation->half;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left[LANES], right[LANES];
    for (int l = 0; l < lanes; l++) {
        left[l] = value[l] >> half;
        right[l] = value[l] & mask;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint32_t *table = permutation->round + ((size_t)round << half);
        for (int l = 0; l < lanes; l++) {
            uint64_t swapped = left[l] ^ table[right[l]];
            left[l] = right[l];
            right[l] = swapped;
        }
    }
    for (int l = 0; l < lanes; l++) value[l] = left[l] << half | right[l];
}

/* Continues from a position, or from an unfinished walk, to the end. */
static uint64_t walk(const struct tr_permutation *permutation, uint64_t value)
{
    do step(permutation, 1, &value);
    while (value >= permutation->count);
    return value;
}

uint64_t tr_permutation_at(const struct tr_permutation *permutation, uint64_t position)
{
    if (permutation->round) return walk(permutation, position);
    return tr_rng_permute(permutation->key, permutation->epoch, permutation->count, position);
}

void tr_permutation_run(const struct tr_permutation *permutation, uint64_t first, int64_t count, int64_t *out)
{
    int64_t place[LANES], next = LANES;
    uint64_t value[LANES];
    if (!permutation->round) {
        for (int64_t i = 0; i < count; i++)
            out[i] = (int64_t)tr_permutation_at(permutation, first + (uint64_t)i);
        return;
    }
    for (int l = 0; l < LANES; l++) {
        place[l] = l;
        value[l] = first + (uint64_t)l;
    }
    while (next < count) { /* a lane whose walk is finished takes the next position */
        step(permutation, LANES, value);
        for (int l = 0; l < LANES; l++) {
            const bool done = value[l] < permutation->count;
            out[place[l]] = (int64_t)value[l];
            place[l] = done ? next : place[l];
            value[l] = done ? first + (uint64_t)next : value[l];
            next += done;
        }
    }
    for (int l = 0; l < LANES; l++)
        if (place[l] < count) out[place[l]] = (int64_t)walk(permutation, value[l]);
}
