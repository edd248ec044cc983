/* Compressing and expanding the lanes of vectors (V_HAS_COMPRESS): numbers that need more work than their
 * neighbours are gathered into vectors of their own. AVX-512 has instructions for it; with AVX2 a table says
 * which lane goes where.
 */
#ifndef TR_DEVICE_CPU_COMPRESS_H
#define TR_DEVICE_CPU_COMPRESS_H

#include "device/cpu/vectors/vec.h"

#if defined(TR_ISA_AVX512)
#define V_HAS_COMPRESS 1

/* The lanes of m, one after the other, then any. */
static inline vf v_compress(vm m, vf v)
{
    return _mm512_maskz_compress_ps(m, v);
}

/* The lanes of m are the first ones of v, in order; the others those of `rest`. */
static inline vf v_expand(vm m, vf v, vf rest)
{
    return _mm512_mask_expand_ps(rest, m, v);
}

static inline int vm_count(vm m)
{
    return __builtin_popcount(m);
}

static inline vm vm_not(vm m)
{
    return (vm)~m;
}

#elif defined(TR_ISA_AVX2)
#define V_HAS_COMPRESS  1

/* For each mask of eight lanes, a byte for each lane of the result: the lane that comes there. `RANK` is the
   number of lanes in the mask below lane i. */
#define RANK(mask, i)   __builtin_popcount((mask) & ((1 << (i)) - 1))
#define PACKED(mask, i) ((uint64_t)((mask) >> (i)&1) * (i) << 8 * RANK(mask, i))
#define SPREAD(mask, i) ((uint64_t)RANK(mask, i) << 8 * (i))

#define EACH_LANE(what, m)                                                                                   \
    what(m, 0) + what(m, 1) + what(m, 2) + what(m, 3) + what(m, 4) + what(m, 5) + what(m, 6) + what(m, 7)
#define EACH_MASK_4(what, m)                                                                                 \
    EACH_LANE(what, m), EACH_LANE(what, m + 1), EACH_LANE(what, m + 2), EACH_LANE(what, m + 3)
#define EACH_MASK_16(what, m)                                                                                \
    EACH_MASK_4(what, m), EACH_MASK_4(what, m + 4), EACH_MASK_4(what, m + 8), EACH_MASK_4(what, m + 12)
#define EACH_MASK_64(what, m)                                                                                \
    EACH_MASK_16(what, m), EACH_MASK_16(what, m + 16), EACH_MASK_16(what, m + 32), EACH_MASK_16(what, m + 48)
#define EACH_MASK(what)                                                                                      \
    EACH_MASK_64(what, 0), EACH_MASK_64(what, 64), EACH_MASK_64(what, 128), EACH_MASK_64(what, 192)

static const uint64_t v_packed_lanes[256] = {EACH_MASK(PACKED)}, v_spread_lanes[256] = {EACH_MASK(SPREAD)};

static inline __m256i v_lanes_of(const uint64_t *table, vm m)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(table + _mm256_movemask_ps(m))));
}

static inline vf v_compress(vm m, vf v)
{
    return _mm256_permutevar8x32_ps(v, v_lanes_of(v_packed_lanes, m));
}

static inline vf v_expand(vm m, vf v, vf rest)
{
    return v_select(m, _mm256_permutevar8x32_ps(v, v_lanes_of(v_spread_lanes, m)), rest);
}

static inline int vm_count(vm m)
{
    return __builtin_popcount((unsigned)_mm256_movemask_ps(m));
}

static inline vm vm_not(vm m)
{
    return _mm256_xor_ps(m, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
}

#undef RANK
#undef PACKED
#undef SPREAD
#undef EACH_LANE
#undef EACH_MASK_4
#undef EACH_MASK_16
#undef EACH_MASK_64
#undef EACH_MASK
#endif

#endif
