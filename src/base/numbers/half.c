#include "base/numbers/half.h"

#include <string.h>

#define SIGN     0x80000000u
#define INFINITE 0x7f800000u

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float tr_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f,
                   fraction = half & 0x3ff;
    if (exponent == 31) return float_of(sign | INFINITE | fraction << 13);
    if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    const float value = (float)fraction * 0x1p-24f; /* subnormal: an integral multiple of 2^-24 */
    return sign ? -value : value;
}

float tr_bfloat_to_float(uint16_t bfloat)
{
    return float_of((uint32_t)bfloat << 16);
}

/* `bits` without its lowest `count` ones, rounded. */
static uint32_t shift_to_even(uint32_t bits, uint32_t count)
{
    const uint32_t kept = bits >> count, half = 1u << (count - 1), rest = bits & ((1u << count) - 1);
    return kept + (rest > half || (rest == half && kept % 2));
}

uint16_t tr_half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const uint32_t size = bits & ~SIGN, exponent = size >> 23;
    if (size > INFINITE) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (exponent >= 143) return (uint16_t)(sign | 0x7c00); /* from 2^16 on */
    /* A fraction that rounds up to 1 carries into the exponent, which is then correct, up to infinity. */
    if (exponent > 112) return (uint16_t)(sign | shift_to_even(size - (112u << 23), 13));
    if (exponent < 102) return sign; /* below 2^-25 */
    return (uint16_t)(sign | shift_to_even((size & 0x7fffff) | 0x800000, 126 - exponent));
}
