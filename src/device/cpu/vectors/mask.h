/* Masks of dropout, VW Philox blocks at a time; as tr_rng_philox() and tr_rng_unit(). */
#ifndef TR_DEVICE_CPU_MASK_H
#define TR_DEVICE_CPU_MASK_H

#include "device/cpu/vectors/vec.h"

/* Shared by all elements of a call. */
struct mask {
    uint32_t key[2];
    uint32_t step, layer;
    vf rate, grown;
};

static inline struct mask mask_of(const uint32_t key[2], uint32_t step, uint32_t layer, float rate)
{
    return (struct mask){{key[0], key[1]}, step, layer, v_set1(rate), v_set1(1 / (1 - rate))};
}

/* words[w] of the blocks whose first counter word is c0, lane by lane. */
V_INLINE void mask_blocks(const struct mask *mask, vi c0, uint32_t example, vi words[4])
{
    vi a = c0, b = vi_set1((int32_t)example);
    vi c = vi_set1((int32_t)mask->step), d = vi_set1((int32_t)mask->layer);
    uint32_t k0 = mask->key[0], k1 = mask->key[1];
    for (int round = 0; round < 10; round++) {
        vi high0, high1;
        vi low0 = vi_mul_wide(a, 0xD2511F53u, &high0), low1 = vi_mul_wide(c, 0xCD9E8D57u, &high1);
        a = vi_xor(vi_xor(high1, b), vi_set1((int32_t)k0));
        b = low1;
        c = vi_xor(vi_xor(high0, d), vi_set1((int32_t)k1));
        d = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = a;
    words[1] = b;
    words[2] = c;
    words[3] = d;
}

/* The words of the VW blocks from number c0 on, in order of elements. */
V_INLINE void mask_words(const struct mask *mask, uint32_t c0, uint32_t example, vi words[4])
{
    mask_blocks(mask, vi_add(vi_set1((int32_t)c0), vi_zip4_order()), example, words);
    vi_zip4(words);
}

V_INLINE vf mask_kept(const struct mask *mask, vi word, vf x)
{
    vf unit = v_mul(v_to_float(vi_shr(word, 8)), v_set1(0x1p-24f)); /* tr_rng_unit() */
    return v_select(v_ge(unit, mask->rate), v_mul(x, mask->grown), v_zero());
}

#endif
