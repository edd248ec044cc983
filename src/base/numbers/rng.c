#include "base/numbers/rng.h"

tr_rng_key tr_rng_key_make(uint64_t seed, uint32_t purpose)
{
    uint32_t block[4];
    tr_rng_key raw = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tr_rng_philox(raw, purpose, 0, 0, 0, block);
    return (tr_rng_key){block[0], block[1]};
}

uint64_t tr_rng_permute(tr_rng_key key, uint32_t epoch, uint64_t count, uint64_t position)
{
    /* Two halves of `half` bits each hold any number below count; at least one bit, so that rounds act. */
    unsigned half = 1;
    while (half < 32 && ((uint64_t)1 << (2 * half)) < count) half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = position >> half, right = position & mask;
        for (uint32_t round = 0; round < 6; round++) {
            uint32_t block[4];
            tr_rng_philox(key, epoch, round, (uint32_t)right, half, block);
            uint64_t swapped = left ^ (block[0] & mask);
            left = right;
            right = swapped;
        }
        position = left << half | right;
    } while (position >= count); /* walks the cycle; fewer than four rounds on average */
    return position;
}
