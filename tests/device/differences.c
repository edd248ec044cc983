#include "device/differences.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* The scalar when *value has moved by `distance`. */
static double at(differences_scalar scalar, void *user, float *value, float distance)
{
    float before = *value;
    *value = before + distance;
    double result = scalar(user);
    *value = before;
    return result;
}

void differences_check(const char *what, differences_scalar scalar, void *user, float step, float *value,
                       const float *gradient, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        double near = at(scalar, user, &value[i], step) - at(scalar, user, &value[i], -step);
        double far = at(scalar, user, &value[i], 2 * step) - at(scalar, user, &value[i], -2 * step);
        double numeric = (8 * near - far) / (12 * (double)step);
        double given = (double)gradient[i];
        if (!(fabs(numeric - given) <= DIFFERENCES_TOLERANCE * (1 + fabs(given))))
            fail_msg("%s: gradient %lld is %.8g, finite differences give %.8g", what, (long long)i, given,
                     numeric);
    }
}

double differences_weigh(int64_t count, const float *y, const float *weight)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)weight[i] * (double)y[i];
    return sum;
}

float *differences_numbers(int64_t count, uint32_t stream)
{
    float *numbers = differences_zeros(count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        tr_rng_philox((tr_rng_key){stream, 99}, (uint32_t)i, 0, 0, 0, words);
        /* Multiples of 2^-16, so that a step away is exact. */
        float magnitude = 0.25f + 0.75f * (float)(words[0] >> 18) * 0x1p-14f;
        numbers[i] = words[1] & 1 ? magnitude : -magnitude;
    }
    return numbers;
}

float *differences_zeros(int64_t count)
{
    float *zeros = tr_alloc_zero((size_t)count, sizeof *zeros);
    assert_non_null(zeros);
    return zeros;
}

void differences_release(int count, float **arrays)
{
    for (int i = 0; i < count; i++) tr_free(arrays[i]);
}
