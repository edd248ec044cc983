/* Units of losses. */
#include "dispute/units/numbers.h"

/* exp(x - m) of each class, and their sum. */
UNIT(softmax_cross_entropy)
{
    const int64_t r = is(to, "dx") ? to->at / a->classes : to->at, label = whole(a->label + r);
    const float *x = a->x + r * a->classes;
    struct greatest greatest = {.any = false};
    if (label < 0) return constant(0);
    for (int64_t k = 0; k < a->classes; k++) greatest_add(&greatest, in(x + k), k);
    if (is(to, "correct")) return if_equal(greatest.at, word((uint32_t)label), constant(1), constant(0));
    const struct num m = greatest.value;
    struct lane_sum sum = lanes_begin();
    for (int64_t k = 0; k < a->classes; k++) lanes_add(&sum, exponential(sub(in(x + k), m)));
    const struct num s = lanes_total(&sum);
    const float off = a->smoothing / (float)a->classes, on = (1 - a->smoothing) + off;
    if (is(to, "dx")) {
        const int64_t k = to->at % a->classes;
        const struct num share = over(exponential(sub(in(x + k), m)), s);
        return mul(flushed(sub(share, constant(k == label ? on : off))), constant(a->scale));
    }
    const struct num logz = logarithm(s);
    if (a->smoothing == 0) return sub(logz, sub(in(x + label), m));
    struct num loss = constant(0);
    for (int64_t k = 0; k < a->classes; k++)
        loss = fused(constant(k == label ? on : off), sub(logz, sub(in(x + k), m)), loss);
    return loss;
}

/* The place of the maximum of a row. */
static struct num place_of(const float *x, int64_t width)
{
    struct greatest greatest = {.any = false};
    for (int64_t k = 0; k < width; k++) greatest_add(&greatest, in(x + k), k);
    return greatest.at;
}

static struct num soft_target(const struct tr_op_soft_cross_entropy *a, int64_t at)
{
    if (a->smoothing == 0) return in(a->target + at);
    return fused(constant(1 - a->smoothing), in(a->target + at), constant(a->smoothing / (float)a->classes));
}

UNIT(soft_cross_entropy)
{
    const int64_t r = is(to, "dx") ? to->at / a->classes : to->at, first = r * a->classes;
    const float *x = a->x + first;
    if (is(to, "correct"))
        return if_equal(place_of(x, a->classes), place_of(a->target + first, a->classes), constant(1),
                        constant(0));
    struct greatest greatest = {.any = false};
    for (int64_t k = 0; k < a->classes; k++) greatest_add(&greatest, in(x + k), k);
    const struct num m = greatest.value;
    struct lane_sum sum = lanes_begin(), all = lanes_begin(), terms = lanes_begin();
    for (int64_t k = 0; k < a->classes; k++) lanes_add(&sum, exponential(sub(in(x + k), m)));
    const struct num s = lanes_total(&sum);
    if (is(to, "dx")) {
        for (int64_t k = 0; k < a->classes; k++) lanes_add(&all, soft_target(a, first + k));
        const struct num share = over(exponential(sub(in(a->x + to->at), m)), s);
        return mul(flushed(fused(share, lanes_total(&all), negated(soft_target(a, to->at)))),
                   constant(a->scale));
    }
    const struct num logz = logarithm(s);
    for (int64_t k = 0; k < a->classes; k++)
        lanes_fused(&terms, soft_target(a, first + k), sub(logz, sub(in(x + k), m)));
    return lanes_total(&terms);
}

UNIT(mean_squared_error)
{
    const int64_t first = to->at * a->width;
    struct lane_sum sum = lanes_begin();
    if (is(to, "dx")) {
        const struct num d = sub(in(a->x + to->at), in(a->target + to->at));
        return mul(mul(d, constant(2 / (float)a->width)), constant(a->scale));
    }
    for (int64_t k = 0; k < a->width; k++) {
        const struct num d = sub(in(a->x + first + k), in(a->target + first + k));
        lanes_fused(&sum, d, d);
    }
    return mul(lanes_total(&sum), constant(1 / (float)a->width));
}

/* The term of an output, or its slope. */
static struct num binary(const struct tr_op_binary_cross_entropy *a, int64_t at, bool slope)
{
    const struct num x = in(a->x + at), t = in(a->target + at), zero = constant(0), one = constant(1);
    const struct num minus = negated(x);
    struct num q = zero, u = zero;
    if (a->weight) {
        q = mul(in(a->weight + at % a->width), t);
        u = sub(add(q, one), t);
    }
    if (slope) {
        const struct num s = sigmoid(x);
        return a->weight ? fused(u, s, negated(q)) : sub(s, t);
    }
    const struct num above = if_equal(x, x, if_less(zero, minus, minus, zero), x);
    const struct num z = add(above, logarithm(add(one, exponential(negated(magnitude(x))))));
    return fused(sub(one, t), x, a->weight ? mul(u, z) : z);
}

UNIT(binary_cross_entropy)
{
    const struct num share = constant(1 / (float)a->width);
    const int64_t first = to->at * a->width;
    if (is(to, "dx")) return mul(mul(flushed(binary(a, to->at, true)), share), constant(a->scale));
    if (is(to, "correct")) {
        struct num right = constant(0);
        const struct num zero = constant(0), one = constant(1), half = constant(0.5f);
        for (int64_t k = 0; k < a->width; k++) {
            const struct num says = if_less(zero, in(a->x + first + k), one, zero);
            const struct num is_so = if_less(half, in(a->target + first + k), one, zero);
            right = add(right, if_equal(says, is_so, one, zero));
        }
        return over(right, constant((float)a->width));
    }
    struct lane_sum sum = lanes_begin();
    for (int64_t k = 0; k < a->width; k++) lanes_add(&sum, binary(a, first + k, false));
    return mul(lanes_total(&sum), share);
}

static struct num huber(const struct tr_op_huber_error *a, int64_t at, bool slope)
{
    const struct num d = sub(in(a->x + at), in(a->target + at)), away = magnitude(d), zero = constant(0);
    const struct num sign = if_less(zero, d, constant(1), if_less(d, zero, constant(-1), d)),
                     delta = constant(a->delta);
    if (a->delta > 0) {
        /* a <= delta */
        const struct num far = slope ? mul(delta, sign) : mul(delta, sub(away, constant(0.5f * a->delta)));
        const struct num near = slope ? d : mul(mul(constant(0.5f), d), d);
        return if_less(away, delta, near, if_equal(away, delta, near, far));
    }
    return slope ? sign : away;
}

UNIT(huber_error)
{
    const struct num share = constant(1 / (float)a->width);
    struct lane_sum sum = lanes_begin();
    if (is(to, "dx")) return mul(mul(huber(a, to->at, true), share), constant(a->scale));
    for (int64_t k = 0; k < a->width; k++) lanes_add(&sum, huber(a, to->at * a->width + k, false));
    return mul(lanes_total(&sum), share);
}

UNIT(focal_cross_entropy)
{
    const int64_t r = is(to, "dx") ? to->at / a->classes : to->at, label = whole(a->label + r);
    const float *x = a->x + r * a->classes;
    const struct num zero = constant(0);
    if (label < 0) return zero;
    struct greatest greatest = {.any = false};
    for (int64_t k = 0; k < a->classes; k++) greatest_add(&greatest, in(x + k), k);
    if (is(to, "correct")) return if_equal(greatest.at, word((uint32_t)label), constant(1), zero);
    const struct num m = greatest.value;
    struct lane_sum all = lanes_begin(), others = lanes_begin();
    for (int64_t k = 0; k < a->classes; k++) {
        const struct num e = exponential(sub(in(x + k), m));
        lanes_add(&all, e);
        lanes_add(&others, k == label ? zero : e);
    }
    const struct num s = lanes_total(&all), q = over(lanes_total(&others), s);
    const struct num n = sub(logarithm(s), sub(in(x + label), m));
    const struct num w = if_equal(q, zero, zero, exponential(mul(constant(a->gamma), logarithm(q))));
    if (is(to, "loss")) return mul(w, n);
    const int64_t k = to->at % a->classes;
    const struct num p = over(exponential(sub(in(x + label), m)), s);
    const struct num factor =
        fused(mul(mul(constant(a->gamma), p), n), if_equal(q, zero, zero, over(w, q)), w);
    const struct num share = k == label ? negated(q) : over(exponential(sub(in(x + k), m)), s);
    return mul(flushed(mul(factor, share)), constant(a->scale));
}

UNIT(quantile_error)
{
    const struct num share = constant(1 / (float)a->width), zero = constant(0), one = constant(1);
    const int64_t first = is(to, "dx") ? to->at : to->at * a->width, count = is(to, "dx") ? 1 : a->width;
    struct lane_sum sum = lanes_begin();
    for (int64_t i = first; i < first + count; i++) {
        const int64_t r = i / a->width, k = i % a->width;
        const struct num q = in(a->quantile + k),
                         d = sub(in(a->target + r * (a->width / a->each) + k / a->each), in(a->x + i));
        if (is(to, "dx")) {
            const struct num slope = if_less(zero, d, negated(q), if_less(d, zero, sub(one, q), d));
            return mul(mul(slope, share), constant(a->scale));
        }
        lanes_add(&sum, if_less(zero, d, mul(q, d), mul(sub(q, one), d)));
    }
    return mul(lanes_total(&sum), share);
}

UNIT(poisson_error)
{
    const struct num share = constant(1 / (float)a->width), one = constant(1);
    const int64_t first = is(to, "dx") ? to->at : to->at * a->width, count = is(to, "dx") ? 1 : a->width;
    struct lane_sum sum = lanes_begin();
    for (int64_t i = first; i < first + count; i++) {
        const struct num x = in(a->x + i), t = in(a->target + i);
        const struct num y = a->logs ? exponential(x) : add(x, constant(a->epsilon));
        if (is(to, "dx")) {
            const struct num slope = a->logs ? sub(y, t) : sub(one, over(t, y));
            return mul(mul(flushed(slope), share), constant(a->scale));
        }
        lanes_add(&sum, a->logs ? fused(negated(t), x, y) : fused(negated(t), logarithm(y), x));
    }
    return mul(lanes_total(&sum), share);
}

/* x[k] - x[k + step] of an embedding, and the sum of its squares. */
static struct num apart(const float *x, int64_t k, int64_t step)
{
    return sub(in(x + k), in(x + k + step));
}
static struct num squares(const float *x, int64_t width, int64_t step)
{
    struct lane_sum sum = lanes_begin();
    for (int64_t k = 0; k < width; k++) {
        const struct num d = apart(x, k, step);
        lanes_fused(&sum, d, d);
    }
    return lanes_total(&sum);
}
/* a <= 0 ? yes : no. */
static struct num if_not_above(struct num a, struct num yes, struct num no)
{
    const struct num zero = constant(0);
    return if_less(a, zero, yes, if_equal(a, zero, yes, no));
}

UNIT(contrastive_error)
{
    const int64_t row = 2 * a->width, r = is(to, "dx") ? to->at / row : to->at, k = to->at % row;
    const float *x = a->x + r * row;
    const bool same = whole(a->label + r) > 0;
    const struct num zero = constant(0), one = constant(1), half = constant(0.5f);
    const struct num away = root(squares(x, a->width, a->width)), gap = sub(constant(a->margin), away);
    if (is(to, "correct"))
        return if_less(away, constant(0.5f * a->margin), same ? one : zero, same ? zero : one);
    if (is(to, "loss"))
        return same ? mul(mul(half, away), away) : if_not_above(gap, zero, mul(mul(half, gap), gap));
    const struct num factor =
        same ? one : if_not_above(gap, zero, if_equal(away, zero, zero, negated(over(gap, away))));
    const struct num slope = mul(mul(factor, apart(x, k % a->width, a->width)), constant(a->scale));
    return k < a->width ? slope : negated(slope);
}

UNIT(triplet_error)
{
    const int64_t width = a->width, row = 3 * width, r = is(to, "dx") ? to->at / row : to->at;
    const int64_t part = to->at % row / width, k = to->at % width;
    const float *x = a->x + r * row;
    const struct num zero = constant(0), one = constant(1), two = constant(2), scale = constant(a->scale);
    struct num like = squares(x, width, width), unlike = squares(x, width, 2 * width);
    if (!a->squared) {
        like = root(like);
        unlike = root(unlike);
    }
    if (is(to, "correct")) return if_less(like, unlike, one, zero);
    const struct num loss = add(sub(like, unlike), constant(a->margin));
    if (is(to, "loss")) return if_not_above(loss, zero, loss);
    const struct num of_like = a->squared ? two : if_equal(like, zero, zero, over(one, like));
    const struct num of_unlike = a->squared ? two : if_equal(unlike, zero, zero, over(one, unlike));
    const struct num u = mul(if_not_above(loss, zero, of_like), apart(x, k, width));
    const struct num w = mul(if_not_above(loss, zero, of_unlike), apart(x, k, 2 * width));
    return mul(part == 0 ? sub(u, w) : part == 1 ? negated(u) : w, scale);
}

UNIT(weigh_rows)
{
    const bool is_loss = is(to, "loss");
    const int64_t r = is_loss ? to->at : to->at / a->width;
    const struct num value = in((is_loss ? a->loss : a->dx) + to->at);
    const int64_t label = whole(a->label + r);
    return label < 0 ? value : mul(value, in(a->weight + label));
}

UNIT(mean_labelled)
{
    const bool is_dx = is(to, "dx"), is_loss = is(to, "loss");
    const int64_t e = is_dx ? to->at / a->classes / a->places : to->at, first = e * a->places;
    int64_t labelled = 0;
    struct lane_sum sum = lanes_begin();
    for (int64_t p = first; p < first + a->places; p++) labelled += whole(a->label + p) >= 0;
    const struct num share = constant(labelled > 0 ? 1 / (float)labelled : 0);
    if (is_dx) {
        const int32_t label = (int32_t)whole(a->label + to->at / a->classes);
        if (label < 0) return in(a->dx + to->at);
        return mul(in(a->dx + to->at), a->weight ? mul(in(a->weight + label), share) : share);
    }
    for (int64_t p = first; p < first + a->places; p++) {
        const int32_t label = (int32_t)whole(a->label + p);
        struct num term =
            is_loss && label < 0 ? constant(0) : in((is_loss ? a->each_loss : a->each_correct) + p);
        if (is_loss && label >= 0 && a->weight) term = mul(term, in(a->weight + label));
        lanes_add(&sum, term);
    }
    return mul(lanes_total(&sum), share);
}

UNIT(to_labels)
{
    const struct num x = in(a->x + to->at), zero = constant(0);
    /* An integer below 2^31 from the bits of a float that is at least 1: its fraction, shifted. */
    const struct num bits = x, exponent = unit_emit(TR_PROGRAM_SHR, bits, word(23), bits, bits);
    const struct num digits =
        unit_emit(TR_PROGRAM_OR, unit_emit(TR_PROGRAM_AND, bits, word(0x7fffff), bits, bits), word(0x800000),
                  bits, bits);
    const struct num up = unit_emit(TR_PROGRAM_SHL, digits,
                                    unit_emit(TR_PROGRAM_ISUB, exponent, word(150), bits, bits), bits, bits);
    const struct num down = unit_emit(
        TR_PROGRAM_SHR, digits, unit_emit(TR_PROGRAM_ISUB, word(150), exponent, bits, bits), bits, bits);
    const struct num number = if_less(x, constant(0x1p23f), down, up);
    return if_less(x, constant(1), zero, if_less(x, constant(0x1p31f), number, zero));
}

static struct num rows_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_sum_rows *a = arguments;
    struct num sum = constant(0);
    (void)at;
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = add(sum, in(a->x + r));
    return sum;
}

UNIT(sum_rows)
{
    return over_cut(&a->cut, to->node, rows_leaf, a, 0);
}

const struct unit_entry unit_losses[] = {
    UNIT_ENTRY(softmax_cross_entropy) UNIT_ENTRY(soft_cross_entropy) UNIT_ENTRY(mean_squared_error)
        UNIT_ENTRY(binary_cross_entropy) UNIT_ENTRY(huber_error) UNIT_ENTRY(focal_cross_entropy)
            UNIT_ENTRY(quantile_error) UNIT_ENTRY(poisson_error) UNIT_ENTRY(contrastive_error)
                UNIT_ENTRY(triplet_error) UNIT_ENTRY(weigh_rows) UNIT_ENTRY(mean_labelled)
                    UNIT_ENTRY(to_labels) UNIT_ENTRY(sum_rows) UNIT_END};
