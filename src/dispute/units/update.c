/* Units of updates, clipping, and holding updates back. Each word of a step's scalars is a number. */
#include "dispute/units/numbers.h"

#define SQUARES_BLOCK 4096
#define WORD(member)  ((int64_t)(offsetof(struct tr_step_scalars, member) / 4))

/* The gradient after clipping and L2. */
static struct num prepared(const struct tr_op_update *a, int64_t i)
{
    struct num g = in(a->grad + i);
    if (a->clip_norm) g = mul(g, in(&a->scalars->clip_scale));
    if (a->clip_value > 0) {
        const struct num least = constant(-a->clip_value), most = constant(a->clip_value);
        g = if_less(g, least, least, g);
        g = if_less(most, g, most, g);
    }
    return a->l2 > 0 ? fused(constant(a->l2), in(a->w + i), g) : g;
}

static struct num moment(float beta, struct num before, struct num g)
{
    return flushed(fused(constant(beta), before, mul(constant(1 - beta), g)));
}

/* The new m or v of element i. */
static struct num second(const struct tr_op_update *a, int64_t i)
{
    const struct num g = prepared(a, i);
    if (a->rule == TR_RULE_ADAGRAD) return fused(g, g, in(a->v + i));
    return moment(a->beta2, in(a->v + i), mul(g, g));
}

static struct num first(const struct tr_op_update *a, int64_t i)
{
    const struct num g = prepared(a, i);
    if (a->rule == TR_RULE_MOMENTUM) return flushed(fused(constant(a->beta1), in(a->m + i), g));
    if (a->rule == TR_RULE_LION) return moment(a->beta2, in(a->m + i), g);
    if (a->rule != TR_RULE_RMSPROP) return moment(a->beta1, in(a->m + i), g);
    const struct num q = over(g, add(root(own(a->v + i)), constant(a->epsilon)));
    return flushed(fused(constant(a->beta1), in(a->m + i), q));
}

/* The new w of element i, by its new moments. */
static struct num updated(const struct tr_op_update *a, int64_t i)
{
    struct num w = in(a->w + i);
    if (a->rule == TR_RULE_STATISTIC) return fused(constant(a->beta1), sub(in(a->grad + i), w), w);
    const struct num rate = mul(in(&a->scalars->rate), constant(a->rate_factor));
    const struct num epsilon = constant(a->epsilon);
    switch (a->rule) {
    case TR_RULE_SGD:
        return fused(negated(rate), prepared(a, i), w);
    case TR_RULE_MOMENTUM: {
        const struct num m = own(a->m + i);
        return fused(negated(rate), a->nesterov ? fused(constant(a->beta1), m, prepared(a, i)) : m, w);
    }
    case TR_RULE_ADAMW:
        w = fused(negated(mul(rate, constant(a->decay))), w, w);
        /* fall through */
    case TR_RULE_ADAM: {
        const struct num own_rate = mul(in(&a->scalars->adam_rate), constant(a->rate_factor));
        const struct num below =
            fused(root(own((a->vmax ? a->vmax : a->v) + i)), in(&a->scalars->adam_correction), epsilon);
        return fused(negated(own_rate), over(own(a->m + i), below), w);
    }
    case TR_RULE_LION: {
        const struct num u =
            fused(constant(a->beta1), in(a->m + i), mul(constant(1 - a->beta1), prepared(a, i)));
        const struct num zero = constant(0),
                         sign = if_less(zero, u, constant(1), if_less(u, zero, constant(-1), u));
        return fused(negated(rate), fused(constant(a->decay), w, sign), w);
    }
    case TR_RULE_RMSPROP:
        if (a->m) return fused(negated(rate), own(a->m + i), w);
        return fused(negated(rate), over(prepared(a, i), add(root(own(a->v + i)), epsilon)), w);
    case TR_RULE_ADAGRAD:
        return fused(negated(rate), over(prepared(a, i), add(root(own(a->v + i)), epsilon)), w);
    default:
        unit_refuse("a rule that has no unit");
        return w;
    }
}

/* x if it is finite, else `otherwise`: x - x is 0 only for finite numbers. */
static struct num if_finite(struct num x, struct num yes, struct num no)
{
    return if_equal(sub(x, x), constant(0), yes, no);
}

UNIT(update)
{
    const int64_t i = to->at;
    if (is(to, "scalars")) {
        struct num flag = in((const char *)a->scalars + 4 * i);
        if (i != WORD(nonfinite) || whole(&a->scalars->held)) return flag;
        for (int64_t k = 0; k < a->count; k++) flag = if_finite(own(a->w + k), flag, word(1));
        return flag;
    }
    const bool held = whole(&a->scalars->held) != 0, averages = a->rule != TR_RULE_STATISTIC;
    if (is(to, "w")) return held ? in(a->w + i) : updated(a, i);
    if (is(to, "m")) {
        const bool has = a->rule == TR_RULE_MOMENTUM || a->rule == TR_RULE_ADAM || a->rule == TR_RULE_ADAMW ||
                         a->rule == TR_RULE_LION || a->rule == TR_RULE_RMSPROP;
        return held || !has ? in(a->m + i) : first(a, i);
    }
    if (is(to, "v")) {
        const bool has = a->rule == TR_RULE_ADAM || a->rule == TR_RULE_ADAMW || a->rule == TR_RULE_RMSPROP ||
                         a->rule == TR_RULE_ADAGRAD;
        return held || !has ? in(a->v + i) : second(a, i);
    }
    if (is(to, "vmax")) {
        const struct num before = in(a->vmax + i), v = own(a->v + i);
        return held ? before : if_less(v, before, before, if_equal(v, before, before, v));
    }
    const struct num ema = in(a->ema + i);
    if (held || !averages) return ema;
    const struct num decay = in(&a->scalars->ema_decay);
    return fused(sub(constant(1), decay), sub(own(a->w + i), ema), ema);
}

UNIT(advance)
{
    const int64_t i = to->at;
    const struct tr_step_scalars *s = a->scalars;
    const bool held = s && whole(&s->held) != 0;
    if (is(to, "scalars")) {
        struct num flag = in((const char *)s + 4 * i);
        if (i != WORD(nonfinite) || held) return flag;
        for (int64_t k = 0; k < a->count; k++) flag = if_finite(own(a->w + k), flag, word(1));
        return flag;
    }
    if (is(to, "ema")) {
        const struct num ema = in(a->ema + i);
        if (held) return ema;
        return fused(sub(constant(1), in(&s->ema_decay)), sub(own(a->w + i), ema), ema);
    }
    struct num w = in(a->w + i);
    if (held) return w;
    const struct num rate = mul(s ? in(&s->rate) : constant(1), constant(a->rate_factor)), zero = constant(0),
                     factor = constant(a->factor);
    struct num size = factor;
    if (a->squares) {
        const struct num first = in(a->squares), second = in(a->squares + 1);
        size = mul(factor, over(root(first), root(second)));
        size = if_less(zero, first, if_less(zero, second, size, factor), factor);
    }
    if (a->decay > 0) w = fused(negated(mul(rate, constant(a->decay))), w, w);
    return fused(negated(mul(rate, size)), in(a->direction + i), w);
}

UNIT(sum_squares)
{
    struct num sum = constant(0);
    (void)to;
    for (int64_t begin = 0; begin < a->count; begin += SQUARES_BLOCK) {
        struct lane_sum lanes = lanes_begin();
        for (int64_t i = begin; i < a->count && i < begin + SQUARES_BLOCK; i++) {
            const struct num x = in(a->x + i);
            lanes_fused(&lanes, x, x);
        }
        sum = add(sum, lanes_total(&lanes));
    }
    return sum;
}

UNIT(clip_scale)
{
    struct num sum = constant(0);
    if (is(to, "norm")) {
        for (int64_t i = 0; i < a->count; i++) sum = add(sum, in(a->squares + i));
        return root(sum);
    }
    if (to->at != WORD(clip_scale)) return in((const char *)a->scalars + 4 * to->at);
    const struct num norm = own(a->norm), most = constant(a->max_norm);
    return if_less(most, norm, over(most, norm), constant(1));
}

UNIT(hold)
{
    struct num flag = in((const char *)a->scalars + 4 * to->at);
    if (to->at != WORD(held)) return flag;
    if (whole(&a->scalars->nonfinite) && a->count > 0) return word(1);
    for (int64_t i = 0; i < a->count; i++) flag = if_finite(in(a->x + i), flag, word(1));
    return flag;
}

const struct unit_entry unit_update[] = {UNIT_ENTRY(update) UNIT_ENTRY(advance) UNIT_ENTRY(sum_squares)
                                             UNIT_ENTRY(clip_scale) UNIT_ENTRY(hold) UNIT_END};
