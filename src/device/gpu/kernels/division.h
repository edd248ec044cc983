/* Quotients and square roots with one rounding, computed from fused multiply-adds and integers, for devices whose
   language promises only approximate ones. Follows the dialect; the functions of mathf.inc divide by these.

   A significand is brought into [1, 2), or [1, 4) under a root, where nothing is subnormal or infinite. There

   - y, a linear approximation of 1 / m after four of Newton's steps, is 1 / m rounded to nearest, as verified
     for all significands; only the significand of all ones is a special case;
   - a quotient with an error of less than a unit in the last place, and y so rounded, give the rounded
     quotient by its remainder (Markstein, IBM Journal of Research and Development 34, 1990): fma(fma(-b, q, a), y, q);
   - a root follows likewise, as verified for all significands.

   The exponent is added back as an integer. The excess bits of a subnormal quotient are rounded as integers, and by
   the remainder where they are exactly half a unit. tests/device/gpu/test_rounding.c tests all of this. */
#ifdef D_OWN_DIVISION
#define D_SIGN     ((int32_t)0x80000000u)
#define D_INFINITE 0x7f800000

/* The significand of a finite float that is not 0, without its sign, and its exponent with the bias of floats. */
static inline float d_significand(int32_t bits, int32_t *exponent)
{
    if (bits < 0x00800000) {
        int32_t zeros = D_ZEROS((uint64_t)(uint32_t)bits) - 40;
        bits = (int32_t)((uint32_t)bits << zeros);
        *exponent = 1 - zeros;
    } else {
        *exponent = bits >> 23;
    }
    return D_FLOAT((bits & 0x007fffff) | 0x3f800000);
}

/* 1 / m, 1 <= m < 2. */
static inline float d_reciprocal(float m)
{
    float y = D_FMA(-0x1.e1e1e2p-2f, m, 0x1.69696ap+0f); /* 24 / 17 - 8 / 17 m */
    y = D_FMA(D_FMA(-m, y, 1.0f), y, y);
    y = D_FMA(D_FMA(-m, y, 1.0f), y, y);
    y = D_FMA(D_FMA(-m, y, 1.0f), y, y);
    y = D_FMA(D_FMA(-m, y, 1.0f), y, y);
    return D_BITS(m) == 0x3fffffff ? 0x1.000002p-1f : y;
}

/* The bits of a / b, of finite floats that are not 0, without their signs. */
static inline int32_t d_quotient(int32_t a_bits, int32_t b_bits)
{
    int32_t a_exponent, b_exponent;
    float a = d_significand(a_bits, &a_exponent), b = d_significand(b_bits, &b_exponent), y = d_reciprocal(b);
    float q = a * y;
    q = D_FMA(D_FMA(-b, q, a), y, q);
    q = D_FMA(D_FMA(-b, q, a), y, q);
    int32_t bits = D_BITS(q), shift = a_exponent - b_exponent, exponent = (bits >> 23) + shift;
    if (exponent >= 255) return D_INFINITE;
    if (exponent > 0) return (int32_t)((uint32_t)bits + ((uint32_t)shift << 23));
    int32_t lost = D_LEAST(1 - exponent, 25), whole = (bits & 0x007fffff) | 0x00800000;
    int32_t rest = whole & ((1 << lost) - 1), middle = 1 << (lost - 1);
    float remainder = D_FMA(-b, q, a);
    whole >>= lost;
    if (rest > middle || (rest == middle && (remainder > 0.0f || (remainder == 0.0f && (whole & 1))))) whole++;
    return whole;
}

static inline float d_divide(float dividend, float divisor)
{
    int32_t a = D_BITS(dividend) & 0x7fffffff, b = D_BITS(divisor) & 0x7fffffff;
    int32_t sign = (D_BITS(dividend) ^ D_BITS(divisor)) & D_SIGN;
    if (a > D_INFINITE || b > D_INFINITE || (a == b && (a == 0 || a == D_INFINITE))) return D_NAN;
    if (a == D_INFINITE || b == 0) return D_FLOAT(sign | D_INFINITE);
    if (a == 0 || b == D_INFINITE) return D_FLOAT(sign);
    return D_FLOAT(sign | d_quotient(a, b));
}

/* The square root of m, 1 <= m < 4. */
static inline float d_root(float m)
{
    float y = D_FLOAT(0x5f3759df - (D_BITS(m) >> 1)); /* nearly 1 / sqrt(m) */
    float g = m * y, h = 0.5f * y, r = D_FMA(-h, g, 0.5f);
    g = D_FMA(g, r, g), h = D_FMA(h, r, h), r = D_FMA(-h, g, 0.5f);
    g = D_FMA(g, r, g), h = D_FMA(h, r, h), r = D_FMA(-h, g, 0.5f);
    g = D_FMA(g, r, g), h = D_FMA(h, r, h);
    return D_FMA(D_FMA(-g, g, m), h, g);
}

static inline float d_square_root(float x)
{
    int32_t bits = D_BITS(x), exponent;
    if ((bits & 0x7fffffff) == 0 || bits == D_INFINITE) return x;
    if (bits < 0 || bits > D_INFINITE) return D_NAN;
    float m = d_significand(bits, &exponent);
    exponent -= 127;
    if (exponent & 1) m = 2.0f * m;
    return D_FLOAT((int32_t)((uint32_t)D_BITS(d_root(m)) + ((uint32_t)(exponent >> 1) << 23)));
}
#endif
