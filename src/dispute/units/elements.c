/* Units of elementwise operations: activations, sums, columns, dropout. */
#include "dispute/units/numbers.h"

UNIT(activation_forward)
{
    return activated(a->activation, a->slope, in(a->x + to->at));
}

static struct num gelu_slope(struct num x)
{
    const struct num half = constant(0.5f);
    const struct num pdf = mul(exponential(mul(constant(-0.5f), mul(x, x))), constant(0x1.988454p-2f));
    const struct num cdf = mul(half, add(constant(1), error_function(mul(x, constant(0x1.6a09e6p-1f)))));
    return fused(x, pdf, cdf);
}

static struct num gelu_tanh_slope(struct num x)
{
    const struct num half = constant(0.5f), one = constant(1);
    const struct num near = fused(mul(x, x), constant(0x1.2444f2p-5f), constant(0x1.988454p-1f));
    const struct num t = tangent(mul(x, near));
    const struct num inner = fused(mul(x, x), constant(0x1.b6676cp-4f), constant(0x1.988454p-1f));
    return fused(mul(mul(half, x), fused(negated(t), t, one)), inner, mul(half, add(one, t)));
}

static struct num silu_slope(struct num x)
{
    const struct num s = sigmoid(x), one = constant(1);
    return mul(s, fused(x, sub(one, s), one));
}

/* dy where x is at least 3, 0 where it is at most -3. */
static struct num hard_swish_back(struct num x, struct num dy)
{
    const struct num low = constant(-3), high = constant(3), zero = constant(0);
    const struct num between = mul(dy, fused(x, constant(0x1.555556p-2f), constant(0.5f)));
    const struct num upper = if_less(high, x, dy, if_equal(x, high, dy, between));
    return if_less(x, low, zero, if_equal(x, low, zero, upper));
}

/* dy between 0 and 6, 0 elsewhere. */
static struct num relu6_back(struct num x, struct num dy)
{
    const struct num zero = constant(0), most = constant(6);
    const struct num upper = if_less(most, x, zero, if_equal(x, most, zero, dy));
    return if_less(x, zero, zero, if_equal(x, zero, zero, upper));
}

static struct num by_input(enum tr_activation activation, struct num x, struct num dy)
{
    switch (activation) {
    case TR_ACT_GELU:
        return mul(dy, gelu_slope(x));
    case TR_ACT_GELU_TANH:
        return mul(dy, gelu_tanh_slope(x));
    case TR_ACT_SILU:
        return mul(dy, silu_slope(x));
    case TR_ACT_HARD_SWISH:
        return hard_swish_back(x, dy);
    case TR_ACT_RELU6:
        return relu6_back(x, dy);
    default:
        unit_refuse("an activation that has no unit");
        return dy;
    }
}

UNIT(activation_backward)
{
    const struct num dy = in(a->dy + to->at), zero = constant(0), one = constant(1);
    if (a->activation == TR_ACT_NONE) return dy;
    if (tr_activation_reads_input(a->activation)) return by_input(a->activation, in(a->x + to->at), dy);
    const struct num y = in(a->y + to->at);
    switch (a->activation) {
    case TR_ACT_RELU:
        return if_less(zero, y, dy, zero);
    case TR_ACT_LEAKY_RELU:
        return if_less(zero, y, dy, mul(constant(a->slope), dy));
    case TR_ACT_TANH:
        return mul(dy, fused(negated(y), y, one));
    case TR_ACT_SIGMOID:
        return mul(dy, mul(y, sub(one, y)));
    default:
        unit_refuse("an activation that has no unit");
        return dy;
    }
}

UNIT(add)
{
    return add(in(a->a + to->at), in(a->b + to->at));
}

UNIT(multiply)
{
    const int64_t row = to->at / a->width / a->spatial;
    return mul(in(a->a + to->at), in(a->b + row * a->width + to->at % a->width));
}

UNIT(multiply_sum)
{
    struct num sum = constant(0);
    for (int64_t p = 0; p < a->spatial; p++) {
        const int64_t i = (to->at / a->width * a->spatial + p) * a->width + to->at % a->width;
        sum = fused(in(a->a + i), in(a->b + i), sum);
    }
    return sum;
}

UNIT(scale)
{
    return mul(constant(a->factor), in(a->x + to->at));
}

UNIT(fill)
{
    (void)to;
    return constant(a->value);
}

UNIT(join_columns)
{
    int64_t width = 0, part = 0;
    for (int i = 0; i < a->parts; i++) width += a->width[i];
    int64_t row = to->at / width, column = to->at % width;
    for (; column >= a->width[part]; part++) column -= a->width[part];
    return a->x[part] ? in(a->x[part] + row * a->width[part] + column) : constant(0);
}

UNIT(split_columns)
{
    int64_t width = 0, before = 0;
    const int part = to->operand[2] - '0'; /* y[0], y[1], ... */
    for (int i = 0; i < a->parts; i++) width += a->width[i];
    for (int i = 0; i < part; i++) before += a->width[i];
    return in(a->x + to->at / a->width[part] * width + before + to->at % a->width[part]);
}

UNIT(dropout)
{
    int64_t example = to->at / a->width, begin = example * a->width;
    if (a->offset) {
        const struct unit_example rows = example_of(a->offset, a->examples, to->at / a->width);
        example = rows.number;
        begin = rows.begin * a->width;
    }
    const int64_t i = to->at - begin;
    const struct num counter[] = {word((uint32_t)(i / 4)), word(a->first_example + (uint32_t)example),
                                  in(&a->scalars->step), word(a->layer)};
    return kept(philox(a->key, counter, (int)(i % 4)), a->rate, in(a->x + to->at));
}

UNIT(drop_examples)
{
    const int64_t row = to->at / a->width;
    const int64_t example = a->offset ? example_of(a->offset, a->examples, row).number : row;
    const struct num counter[] = {word(0), word(a->first_example + (uint32_t)example), in(&a->scalars->step),
                                  word(a->layer)};
    return kept(philox(a->key, counter, 0), a->rate, in(a->x + to->at));
}

const struct unit_entry unit_elements[] = {
    UNIT_ENTRY(activation_forward) UNIT_ENTRY(activation_backward) UNIT_ENTRY(add) UNIT_ENTRY(multiply)
        UNIT_ENTRY(multiply_sum) UNIT_ENTRY(scale) UNIT_ENTRY(fill) UNIT_ENTRY(join_columns)
            UNIT_ENTRY(split_columns) UNIT_ENTRY(dropout) UNIT_ENTRY(drop_examples) UNIT_END};
