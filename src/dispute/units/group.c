/* Units of group normalization. */
#include "dispute/units/numbers.h"

UNIT(group_norm_forward)
{
    const int64_t width = a->channels / a->groups, size = a->spatial * a->channels;
    if (is(to, "y")) {
        const int64_t c = to->at % a->channels, at = to->at / size * a->groups + c / width;
        const struct num d = sub(in(a->x + to->at), own(a->mean + at));
        return fused(mul(d, own(a->inv + at)), in(a->gamma + c), in(a->beta + c));
    }
    const float *x = a->x + to->at / a->groups * size;
    const int64_t first = to->at % a->groups * width;
    const bool is_mean = is(to, "mean");
    const struct num n = constant((float)(a->spatial * width)), zero = constant(0);
    const struct num mean = is_mean ? zero : own(a->mean + to->at);
    struct num sum = zero;
    for (int64_t c = first; c < first + width; c++) {
        struct num channel = zero;
        for (int64_t i = c; i < size; i += a->channels) {
            const struct num d = is_mean ? in(x + i) : sub(in(x + i), mean);
            channel = is_mean ? add(channel, d) : fused(d, d, channel);
        }
        sum = add(sum, channel);
    }
    if (is_mean) return over(sum, n);
    return over(constant(1), root(add(over(sum, n), constant(a->epsilon))));
}

static struct num xhat(const struct tr_op_group_norm_backward *a, int64_t r, int64_t i)
{
    const int64_t at = r * a->groups + i % a->channels / (a->channels / a->groups);
    return mul(sub(in(a->x + r * a->spatial * a->channels + i), in(a->mean + at)), in(a->inv + at));
}

static struct num channel_sum(const struct tr_op_group_norm_backward *a, int64_t r, int64_t c)
{
    const int64_t size = a->spatial * a->channels;
    struct num sum = constant(0);
    for (int64_t i = c; i < size; i += a->channels) sum = add(sum, in(a->dy + r * size + i));
    return sum;
}

static struct num channel_product(const struct tr_op_group_norm_backward *a, int64_t r, int64_t c)
{
    const int64_t size = a->spatial * a->channels;
    struct num sum = constant(0);
    for (int64_t i = c; i < size; i += a->channels) sum = fused(in(a->dy + r * size + i), xhat(a, r, i), sum);
    return sum;
}

static struct num gamma_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_group_norm_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = add(sum, channel_product(a, r, at));
    return sum;
}

static struct num beta_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_group_norm_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = add(sum, channel_sum(a, r, at));
    return sum;
}

UNIT(group_norm_backward)
{
    if (!is(to, "dx"))
        return over_cut(&a->cut, to->node, is(to, "dgamma") ? gamma_leaf : beta_leaf, a, to->at);
    const int64_t width = a->channels / a->groups, size = a->spatial * a->channels;
    const int64_t r = to->at / size, i = to->at % size, c = i % a->channels, first = c / width * width;
    const struct num n = constant((float)(a->spatial * width));
    struct num sum = constant(0), product = constant(0);
    for (int64_t k = first; k < first + width; k++) {
        sum = fused(in(a->gamma + k), channel_sum(a, r, k), sum);
        product = fused(in(a->gamma + k), channel_product(a, r, k), product);
    }
    const struct num g = mul(in(a->dy + to->at), in(a->gamma + c));
    return mul(in(a->inv + r * a->groups + c / width),
               fused(negated(xhat(a, r, i)), over(product, n), sub(g, over(sum, n))));
}

const struct unit_entry unit_group[] = {UNIT_ENTRY(group_norm_forward) UNIT_ENTRY(group_norm_backward)
                                            UNIT_END};
