/* The optimizer: one formula per element and rule, and the sums for clipping by norm. */
#include "device/ref/ref.h"
#include "device/ref/scalar.h"

#include <math.h>

#define SQUARES_BLOCK 4096

/* The gradient after clipping and L2. */
static float prepared_gradient(const struct tr_op_update *a, int64_t i)
{
    float g = a->grad[i];
    if (a->clip_norm) g = g * a->scalars->clip_scale;
    if (a->clip_value > 0) {
        g = g < -a->clip_value ? -a->clip_value : g;
        g = g > a->clip_value ? a->clip_value : g;
    }
    return a->l2 > 0 ? fmaf(a->l2, a->w[i], g) : g;
}

static float adam(const struct tr_op_update *a, int64_t i, float g, float w)
{
    const struct tr_step_scalars *s = a->scalars;
    a->m[i] = tr_flushf(fmaf(a->beta1, a->m[i], (1 - a->beta1) * g));
    a->v[i] = tr_flushf(fmaf(a->beta2, a->v[i], (1 - a->beta2) * (g * g)));
    float rate = s->adam_rate * a->rate_factor, v = a->v[i];
    if (a->vmax) v = a->vmax[i] = v <= a->vmax[i] ? a->vmax[i] : v;
    return fmaf(-rate, a->m[i] / fmaf(sqrtf(v), s->adam_correction, a->epsilon), w);
}

static float lion(const struct tr_op_update *a, int64_t i, float rate, float g)
{
    float before = a->m[i], u = fmaf(a->beta1, before, (1 - a->beta1) * g), sign = u > 0 ? 1 : u < 0 ? -1 : u;
    a->m[i] = tr_flushf(fmaf(a->beta2, before, (1 - a->beta2) * g));
    return fmaf(-rate, fmaf(a->decay, a->w[i], sign), a->w[i]);
}

static float rmsprop(const struct tr_op_update *a, int64_t i, float rate, float g)
{
    a->v[i] = tr_flushf(fmaf(a->beta2, a->v[i], (1 - a->beta2) * (g * g)));
    float q = g / (sqrtf(a->v[i]) + a->epsilon);
    if (a->m) q = a->m[i] = tr_flushf(fmaf(a->beta1, a->m[i], q));
    return fmaf(-rate, q, a->w[i]);
}

static float adagrad(const struct tr_op_update *a, int64_t i, float rate, float g)
{
    a->v[i] = fmaf(g, g, a->v[i]);
    return fmaf(-rate, g / (sqrtf(a->v[i]) + a->epsilon), a->w[i]);
}

/* The new w of element i. */
static float updated(const struct tr_op_update *a, int64_t i)
{
    float w = a->w[i], rate = a->scalars->rate * a->rate_factor;
    if (a->rule == TR_RULE_STATISTIC) return fmaf(a->beta1, a->grad[i] - w, w);
    float g = prepared_gradient(a, i);
    switch (a->rule) {
    case TR_RULE_SGD:
        return fmaf(-rate, g, w);
    case TR_RULE_MOMENTUM:
        a->m[i] = tr_flushf(fmaf(a->beta1, a->m[i], g));
        return fmaf(-rate, a->nesterov ? fmaf(a->beta1, a->m[i], g) : a->m[i], w);
    case TR_RULE_ADAM:
        return adam(a, i, g, w);
    case TR_RULE_ADAMW:
        return adam(a, i, g, fmaf(-(rate * a->decay), w, w));
    case TR_RULE_LION:
        return lion(a, i, rate, g);
    case TR_RULE_RMSPROP:
        return rmsprop(a, i, rate, g);
    case TR_RULE_ADAGRAD:
        return adagrad(a, i, rate, g);
    case TR_RULE_STATISTIC:
        break;
    }
    assert(!"a rule of enum tr_rule");
    return w;
}

tr_status ref_update(tr_device *device, const struct tr_op_update *a)
{
    (void)device;
    bool averages = a->ema && a->rule != TR_RULE_STATISTIC;
    if (a->scalars->held) return TR_OK;
    for (int64_t i = 0; i < a->count; i++) {
        float w = updated(a, i);
        a->w[i] = w;
        if (averages) a->ema[i] = fmaf(1 - a->scalars->ema_decay, w - a->ema[i], a->ema[i]);
        if (!isfinite(w)) a->scalars->nonfinite = 1;
    }
    return TR_OK;
}

tr_status ref_advance(tr_device *device, const struct tr_op_advance *a)
{
    (void)device;
    struct tr_step_scalars *s = a->scalars;
    if (s && s->held) return TR_OK;
    float rate = (s ? s->rate : 1) * a->rate_factor, size = a->factor;
    if (a->squares && a->squares[0] > 0 && a->squares[1] > 0)
        size = a->factor * (sqrtf(a->squares[0]) / sqrtf(a->squares[1]));
    for (int64_t i = 0; i < a->count; i++) {
        float w = a->decay > 0 ? fmaf(-(rate * a->decay), a->w[i], a->w[i]) : a->w[i];
        w = fmaf(-(rate * size), a->direction[i], w);
        a->w[i] = w;
        if (a->ema) a->ema[i] = fmaf(1 - s->ema_decay, w - a->ema[i], a->ema[i]);
        if (s && !isfinite(w)) s->nonfinite = 1;
    }
    return TR_OK;
}

tr_status ref_sum_squares(tr_device *device, const struct tr_op_sum_squares *a)
{
    (void)device;
    float sum = 0;
    for (int64_t begin = 0; begin < a->count; begin += SQUARES_BLOCK) {
        int64_t end = begin + SQUARES_BLOCK < a->count ? begin + SQUARES_BLOCK : a->count;
        float lane[REF_LANES] = {0};
        for (int64_t i = begin; i < end; i++) {
            int64_t j = (i - begin) % REF_LANES;
            lane[j] = fmaf(a->x[i], a->x[i], lane[j]);
        }
        sum += ref_lanes_total(lane);
    }
    *a->out = sum;
    return TR_OK;
}

tr_status ref_clip_scale(tr_device *device, const struct tr_op_clip_scale *a)
{
    (void)device;
    float sum = 0;
    for (int64_t i = 0; i < a->count; i++) sum += a->squares[i];
    float norm = sqrtf(sum);
    *a->norm = norm;
    a->scalars->clip_scale = norm > a->max_norm ? a->max_norm / norm : 1;
    return TR_OK;
}

tr_status ref_hold(tr_device *device, const struct tr_op_hold *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++)
        if (!isfinite(a->x[i]) || a->scalars->nonfinite) a->scalars->held = 1;
    return TR_OK;
}
