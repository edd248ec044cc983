/* Elementwise operations: activations, sums, dropout. */
#include "device/ref/ref.h"
#include "device/ref/scalar.h"

#include "base/numbers/rng.h"

#include <math.h>

tr_status ref_activation_forward(tr_device *device, const struct tr_op_activation_forward *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++) a->y[i] = ref_activate(a->activation, a->slope, a->x[i]);
    return TR_OK;
}

static float gelu_slope(float x)
{
    float pdf = tr_expf(-0.5f * (x * x)) * 0x1.988454p-2f;
    float cdf = 0.5f * (1 + ref_gelu_erf(x));
    return fmaf(x, pdf, cdf);
}

static float gelu_tanh_slope(float x)
{
    float t = ref_gelu_tanh(x), inner = fmaf(x * x, 0x1.b6676cp-4f, 0x1.988454p-1f);
    return fmaf((0.5f * x) * fmaf(-t, t, 1), inner, 0.5f * (1 + t));
}

static float silu_slope(float x)
{
    float s = tr_sigmoidf(x);
    return s * fmaf(x, 1 - s, 1);
}

static float activation_gradient(const struct tr_op_activation_backward *a, int64_t i)
{
    float dy = a->dy[i];
    switch (a->activation) {
    case TR_ACT_NONE:
        return dy;
    case TR_ACT_RELU:
        return a->y[i] > 0 ? dy : 0;
    case TR_ACT_LEAKY_RELU:
        return a->y[i] > 0 ? dy : a->slope * dy;
    case TR_ACT_TANH:
        return dy * fmaf(-a->y[i], a->y[i], 1);
    case TR_ACT_SIGMOID:
        return dy * (a->y[i] * (1 - a->y[i]));
    case TR_ACT_GELU:
        return dy * gelu_slope(a->x[i]);
    case TR_ACT_GELU_TANH:
        return dy * gelu_tanh_slope(a->x[i]);
    case TR_ACT_SILU:
        return dy * silu_slope(a->x[i]);
    case TR_ACT_HARD_SWISH:
        if (-3 >= a->x[i]) return 0;
        return a->x[i] >= 3 ? dy : dy * fmaf(a->x[i], 0x1.555556p-2f, 0.5f);
    case TR_ACT_RELU6:
        return 0 >= a->x[i] || a->x[i] >= 6 ? 0 : dy;
    }
    assert(!"an activation of enum tr_activation");
    return dy;
}

tr_status ref_activation_backward(tr_device *device, const struct tr_op_activation_backward *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++) a->dx[i] = activation_gradient(a, i);
    return TR_OK;
}

tr_status ref_add(tr_device *device, const struct tr_op_add *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->a[i] + a->b[i];
    return TR_OK;
}

tr_status ref_multiply(tr_device *device, const struct tr_op_multiply *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t p = 0; p < a->spatial; p++)
            for (int64_t k = 0; k < a->width; k++) {
                const int64_t i = (r * a->spatial + p) * a->width + k;
                a->y[i] = a->a[i] * a->b[r * a->width + k];
            }
    return TR_OK;
}

tr_status ref_multiply_sum(tr_device *device, const struct tr_op_multiply_sum *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t k = 0; k < a->width; k++) {
            float sum = 0;
            for (int64_t p = 0; p < a->spatial; p++) {
                const int64_t i = (r * a->spatial + p) * a->width + k;
                sum = fmaf(a->a[i], a->b[i], sum);
            }
            a->y[r * a->width + k] = sum;
        }
    return TR_OK;
}

tr_status ref_scale(tr_device *device, const struct tr_op_scale *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->factor * a->x[i];
    return TR_OK;
}

tr_status ref_fill(tr_device *device, const struct tr_op_fill *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->value;
    return TR_OK;
}

tr_status ref_dropout(tr_device *device, const struct tr_op_dropout *a)
{
    (void)device;
    tr_rng_key key = {a->key[0], a->key[1]};
    float grown = 1 / (1 - a->rate);
    for (int64_t e = 0; e < a->examples; e++) {
        int64_t begin = (a->offset ? a->offset[e] : e) * a->width;
        int64_t count = (a->offset ? a->offset[e + 1] : e + 1) * a->width - begin;
        for (int64_t i = 0; i < count; i++) {
            uint32_t words[4];
            tr_rng_philox(key, (uint32_t)(i / 4), a->first_example + (uint32_t)e, a->scalars->step, a->layer,
                          words);
            bool kept = tr_rng_unit(words[i % 4]) >= a->rate;
            a->y[begin + i] = kept ? a->x[begin + i] * grown : 0;
        }
    }
    return TR_OK;
}

tr_status ref_drop_examples(tr_device *device, const struct tr_op_drop_examples *a)
{
    (void)device;
    tr_rng_key key = {a->key[0], a->key[1]};
    float grown = 1 / (1 - a->rate);
    for (int64_t e = 0; e < a->examples; e++) {
        uint32_t words[4];
        tr_rng_philox(key, 0, a->first_example + (uint32_t)e, a->scalars->step, a->layer, words);
        bool kept = tr_rng_unit(words[0]) >= a->rate;
        int64_t begin = (a->offset ? a->offset[e] : e) * a->width;
        int64_t end = (a->offset ? a->offset[e + 1] : e + 1) * a->width;
        for (int64_t i = begin; i < end; i++) a->y[i] = kept ? a->x[i] * grown : 0;
    }
    return TR_OK;
}

tr_status ref_join_columns(tr_device *device, const struct tr_op_join_columns *a)
{
    (void)device;
    float *y = a->y;
    for (int64_t r = 0; r < a->rows; r++)
        for (int32_t i = 0; i < a->parts; y += a->width[i++]) {
            const float *x = a->x[i] ? a->x[i] + r * a->width[i] : NULL;
            for (int64_t k = 0; k < a->width[i]; k++) y[k] = x ? x[k] : 0;
        }
    return TR_OK;
}

tr_status ref_split_columns(tr_device *device, const struct tr_op_split_columns *a)
{
    (void)device;
    const float *x = a->x;
    for (int64_t r = 0; r < a->rows; r++)
        for (int32_t i = 0; i < a->parts; x += a->width[i++])
            for (int64_t k = 0; k < a->width[i] && a->y[i]; k++) a->y[i][r * a->width[i] + k] = x[k];
    return TR_OK;
}
