/* The optimizer: one pass that reads gradient, parameter and state once and writes the changed ones. */
#include "device/cpu/elementwise/update.h"

#include "device/cpu/cpu.h"
#include "device/cpu/vectors/vec.h"
#include "device/cpu/vectors/math.h"

#include <math.h>

#define GRAIN 1024

#define NANOSECONDS_PER_ELEMENT 0.5

/* The scalars of a call on all lanes. */
struct constants {
    vf rate, adam_rate, correction, decay, shrink; /* shrink: rate * decay */
    vf beta1, beta2, rest1, rest2, epsilon;        /* rest: 1 - beta */
    vf clip_scale, clip_most, clip_least, l2, average;
};

static struct constants constants_of(const struct tr_op_update *a)
{
    const struct tr_step_scalars *s = a->scalars;
    float rate = s->rate * a->rate_factor;
    return (struct constants){
        .rate = v_set1(rate),
        .adam_rate = v_set1(s->adam_rate * a->rate_factor),
        .correction = v_set1(s->adam_correction),
        .decay = v_set1(a->decay),
        .shrink = v_set1(rate * a->decay),
        .beta1 = v_set1(a->beta1),
        .beta2 = v_set1(a->beta2),
        .rest1 = v_set1(1 - a->beta1),
        .rest2 = v_set1(1 - a->beta2),
        .epsilon = v_set1(a->epsilon),
        .clip_scale = v_set1(s->clip_scale),
        .clip_most = v_set1(a->clip_value),
        .clip_least = v_set1(-a->clip_value),
        .l2 = v_set1(a->l2),
        .average = v_set1(1 - s->ema_decay),
    };
}

/* The gradient after clipping and L2. */
V_INLINE vf prepared_gradient(const struct tr_op_update *a, const struct constants *c, vf g, vf w)
{
    if (a->clip_norm) g = v_mul(g, c->clip_scale);
    if (a->clip_value > 0) {
        g = v_select(v_lt(g, c->clip_least), c->clip_least, g);
        g = v_select(v_gt(g, c->clip_most), c->clip_most, g);
    }
    if (a->l2 > 0) g = v_fma(c->l2, w, g);
    return g;
}

/* The rules, on n <= VW elements from i on. `whole` and `rule` are constants where this is inlined. */
V_INLINE vf load(const float *p, int64_t n, bool whole)
{
    return whole ? v_load(p) : v_load_part(p, n);
}

V_INLINE void store(float *p, vf v, int64_t n, bool whole)
{
    if (whole)
        v_store(p, v);
    else
        v_store_part(p, v, n);
}

/* The rules that divide by the root of an uncorrected second moment. */
V_INLINE vf rooted(const struct tr_op_update *a, const struct constants *c, enum tr_rule rule, vf g, vf w,
                   int64_t i, int64_t n, bool whole)
{
    vf v = load(a->v + i, n, whole);
    v = rule == TR_RULE_ADAGRAD ? v_fma(g, g, v) : v_flush(v_fma(c->beta2, v, v_mul(c->rest2, v_mul(g, g))));
    store(a->v + i, v, n, whole);
    vf q = v_div(g, v_add(v_sqrt(v), c->epsilon));
    if (rule == TR_RULE_RMSPROP && a->m) {
        q = v_flush(v_fma(c->beta1, load(a->m + i, n, whole), q));
        store(a->m + i, q, n, whole);
    }
    return v_fnma(c->rate, q, w);
}

V_INLINE vf lion(const struct tr_op_update *a, const struct constants *c, vf g, vf w, int64_t i, int64_t n,
                 bool whole)
{
    const vf m = load(a->m + i, n, whole), u = v_fma(c->beta1, m, v_mul(c->rest1, g));
    const vf sign = v_select(v_gt(u, v_zero()), v_set1(1), v_select(v_lt(u, v_zero()), v_set1(-1), u));
    store(a->m + i, v_flush(v_fma(c->beta2, m, v_mul(c->rest2, g))), n, whole);
    return v_fnma(c->rate, v_fma(c->decay, w, sign), w);
}

V_INLINE vf ruled(const struct tr_op_update *a, const struct constants *c, enum tr_rule rule, vf g, int64_t i,
                  int64_t n, bool whole)
{
    vf w = load(a->w + i, n, whole);
    if (rule == TR_RULE_STATISTIC) return v_fma(c->beta1, v_sub(g, w), w);
    g = prepared_gradient(a, c, g, w);
    if (rule == TR_RULE_SGD) return v_fnma(c->rate, g, w);
    if (rule == TR_RULE_RMSPROP || rule == TR_RULE_ADAGRAD) return rooted(a, c, rule, g, w, i, n, whole);
    if (rule == TR_RULE_LION) return lion(a, c, g, w, i, n, whole);
    vf m = load(a->m + i, n, whole);
    if (rule == TR_RULE_MOMENTUM) {
        m = v_flush(v_fma(c->beta1, m, g));
        store(a->m + i, m, n, whole);
        return v_fnma(c->rate, a->nesterov ? v_fma(c->beta1, m, g) : m, w);
    }
    vf v = load(a->v + i, n, whole);
    if (rule == TR_RULE_ADAMW) w = v_fnma(c->shrink, w, w);
    m = v_flush(v_fma(c->beta1, m, v_mul(c->rest1, g)));
    v = v_flush(v_fma(c->beta2, v, v_mul(c->rest2, v_mul(g, g))));
    store(a->m + i, m, n, whole);
    store(a->v + i, v, n, whole);
    if (a->vmax) { /* the greater one, NaN above all: v unless v <= before */
        const vf before = load(a->vmax + i, n, whole);
        v = v_select(v_ge(before, v), before, v);
        store(a->vmax + i, v, n, whole);
    }
    return v_fnma(c->adam_rate, v_div(m, v_fma(v_sqrt(v), c->correction, c->epsilon)), w);
}

/* Updates elements i to i + n by their gradient. Returns `bad`, which is +0 or -0 as long as all new
   parameters are finite, and NaN from then on. */
V_INLINE vf step(const struct tr_op_update *a, const struct constants *c, enum tr_rule rule,
                 const float *gradient, int64_t i, int64_t n, bool whole, vf bad)
{
    vf w = ruled(a, c, rule, load(gradient, n, whole), i, n, whole);
    store(a->w + i, w, n, whole);
    if (a->ema && rule != TR_RULE_STATISTIC) {
        vf ema = load(a->ema + i, n, whole);
        store(a->ema + i, v_fma(c->average, v_sub(w, ema), ema), n, whole);
    }
    return v_fma(whole ? w : v_keep_part(w, n), v_zero(), bad);
}

/* Arguments of update_rows(). */
struct rows {
    int64_t first, step, count, columns;
    const float *gradient;
    int64_t gradient_step;
};

V_INLINE vf update_by(const struct tr_op_update *a, enum tr_rule rule, const struct rows *rows)
{
    const struct constants c = constants_of(a);
    vf bad = v_zero();
    for (int64_t r = 0; r < rows->count; r++) {
        const float *gradient = rows->gradient + r * rows->gradient_step;
        const int64_t begin = rows->first + r * rows->step;
        int64_t i = 0;
        for (; i + VW <= rows->columns; i += VW)
            bad = step(a, &c, rule, gradient + i, begin + i, VW, true, bad);
        if (i < rows->columns)
            bad = step(a, &c, rule, gradient + i, begin + i, rows->columns - i, false, bad);
    }
    return bad;
}

void update_rows(const struct tr_op_update *a, int64_t first, int64_t step, int64_t count, int64_t columns,
                 const float *gradient, int64_t gradient_step)
{
    const struct rows rows = {first, step, count, columns, gradient, gradient_step};
    vf bad = v_zero();
    switch (a->rule) {
    case TR_RULE_SGD:
        bad = update_by(a, TR_RULE_SGD, &rows);
        break;
    case TR_RULE_MOMENTUM:
        bad = update_by(a, TR_RULE_MOMENTUM, &rows);
        break;
    case TR_RULE_ADAM:
        bad = update_by(a, TR_RULE_ADAM, &rows);
        break;
    case TR_RULE_ADAMW:
        bad = update_by(a, TR_RULE_ADAMW, &rows);
        break;
    case TR_RULE_LION:
        bad = update_by(a, TR_RULE_LION, &rows);
        break;
    case TR_RULE_RMSPROP:
        bad = update_by(a, TR_RULE_RMSPROP, &rows);
        break;
    case TR_RULE_ADAGRAD:
        bad = update_by(a, TR_RULE_ADAGRAD, &rows);
        break;
    case TR_RULE_STATISTIC:
        bad = update_by(a, TR_RULE_STATISTIC, &rows);
        break;
    }
    if (v_fold(bad) != 0) __atomic_store_n(&a->scalars->nonfinite, 1, __ATOMIC_RELAXED);
}

static void update_part(void *arguments, int member, int size)
{
    const struct tr_op_update *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->count, GRAIN, member, size, &begin, &end);
    update_rows(a, begin, 0, 1, end - begin, a->grad + begin, 0);
}

tr_status CPU_KERNEL(update)(tr_device *device, const struct tr_op_update *a)
{
    if (a->scalars->held) return TR_OK;
    cpu_run(cpu_device_of(device), (double)a->count * NANOSECONDS_PER_ELEMENT, update_part, (void *)a);
    return TR_OK;
}

struct advance {
    const struct tr_op_advance *op;
    vf shrink, step, average; /* rate * decay, rate * size */
};

V_INLINE vf advance(const struct advance *d, int64_t i, int64_t n, bool whole, vf bad)
{
    const struct tr_op_advance *a = d->op;
    vf w = load(a->w + i, n, whole);
    if (a->decay > 0) w = v_fnma(d->shrink, w, w);
    w = v_fnma(d->step, load(a->direction + i, n, whole), w);
    store(a->w + i, w, n, whole);
    if (a->ema) {
        vf ema = load(a->ema + i, n, whole);
        store(a->ema + i, v_fma(d->average, v_sub(w, ema), ema), n, whole);
    }
    return v_fma(whole ? w : v_keep_part(w, n), v_zero(), bad);
}

static void advance_part(void *arguments, int member, int size)
{
    const struct advance *d = arguments;
    int64_t i, end;
    vf bad = v_zero();
    tr_team_chunk(d->op->count, GRAIN, member, size, &i, &end);
    for (; i + VW <= end; i += VW) bad = advance(d, i, VW, true, bad);
    if (i < end) bad = advance(d, i, end - i, false, bad);
    if (d->op->scalars && v_fold(bad) != 0) __atomic_store_n(&d->op->scalars->nonfinite, 1, __ATOMIC_RELAXED);
}

tr_status CPU_KERNEL(advance)(tr_device *device, const struct tr_op_advance *a)
{
    const struct tr_step_scalars *s = a->scalars;
    if (s && s->held) return TR_OK;
    float rate = (s ? s->rate : 1) * a->rate_factor, size = a->factor;
    if (a->squares && a->squares[0] > 0 && a->squares[1] > 0)
        size = a->factor * (sqrtf(a->squares[0]) / sqrtf(a->squares[1]));
    struct advance d = {a, v_set1(rate * a->decay), v_set1(rate * size), v_set1(s ? 1 - s->ema_decay : 0)};
    cpu_run(cpu_device_of(device), (double)a->count * NANOSECONDS_PER_ELEMENT, advance_part, &d);
    return TR_OK;
}
