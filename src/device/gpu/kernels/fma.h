/* The fused multiply-add in integers, for devices that have no instruction for it and whose function is inexact.
   Follows the dialect.

   Product and addend are integers of 62 bits, the highest of which is 1, with an exponent. The smaller is shifted
   right to match the larger; if bits are lost, the last bit becomes 1 (sticky), far below the place where the sum is
   rounded. Where high bits cancel, no bit was lost. Subnormal floats are never operands.
   tests/device/gpu/test_rounding.c tests it. */
#ifdef D_OWN_FMA
#define D_FMA_TOP 61

/* `m` shifted so that its highest 1 is at D_FMA_TOP; the exponent says where that is. */
static inline uint64_t d_raise(uint64_t m, int32_t *exponent)
{
    int32_t zeros = D_ZEROS(m) - (63 - D_FMA_TOP);
    *exponent -= zeros;
    return m << zeros;
}

/* m 2^exponent, rounded to nearest, as the bits of a float; m is not 0. */
static inline int32_t d_rounded(uint64_t m, int32_t exponent)
{
    int32_t top = 63 - D_ZEROS(m), biased = exponent + top + 127, lost = top - 23;
    if (biased >= 255) return 0x7f800000;
    if (biased < 1) lost += 1 - biased; /* bits that a subnormal number lacks */
    if (lost > 62) return 0;
    if (lost > 0) {
        uint64_t rest = m & (((uint64_t)1 << lost) - 1), middle = (uint64_t)1 << (lost - 1);
        m >>= lost;
        if (rest > middle || (rest == middle && (m & 1))) m++;
    } else {
        m <<= -lost;
    }
    return biased < 1 ? (int32_t)m : (int32_t)((uint32_t)(biased - 1) << 23) + (int32_t)m;
}

static inline float d_fma(float a, float b, float c)
{
    int32_t x = D_BITS(a) & 0x7fffffff, y = D_BITS(b) & 0x7fffffff, z = D_BITS(c) & 0x7fffffff;
    if (x < 0x7f800000 && y < 0x7f800000 && z == 0x7f800000) return c; /* decided here, since their product may
                                                                          overflow to infinity in the next line */
    if (x >= 0x7f800000 || y >= 0x7f800000 || z >= 0x7f800000 || x == 0 || y == 0) return a * b + c;
    if (z == 0) return a * b;
    uint64_t p = (uint64_t)(x < 0x00800000 ? x : (x & 0x007fffff) | 0x00800000);
    p *= (uint64_t)(y < 0x00800000 ? y : (y & 0x007fffff) | 0x00800000);
    uint64_t s = (uint64_t)(z < 0x00800000 ? z : (z & 0x007fffff) | 0x00800000);
    int32_t p_exponent = D_MOST(x >> 23, 1) + D_MOST(y >> 23, 1) - 300, s_exponent = D_MOST(z >> 23, 1) - 150;
    int32_t p_sign = (D_BITS(a) ^ D_BITS(b)) < 0, s_sign = D_BITS(c) < 0;
    p = d_raise(p, &p_exponent);
    s = d_raise(s, &s_exponent);
    if (s_exponent > p_exponent || (s_exponent == p_exponent && s > p)) {
        uint64_t m = p;
        int32_t t = p_exponent;
        p = s, s = m;
        p_exponent = s_exponent, s_exponent = t;
        t = p_sign, p_sign = s_sign, s_sign = t;
    }
    int32_t behind = p_exponent - s_exponent;
    if (behind > 62) behind = 62; /* only the sticky bit is left */
    s = (s >> behind) | ((s & (((uint64_t)1 << behind) - 1)) != 0);
    p = p_sign == s_sign ? p + s : p - s;
    if (p == 0) return 0.0f;
    return D_FLOAT(d_rounded(p, p_exponent) | (p_sign ? (int32_t)0x80000000u : 0));
}
#endif
