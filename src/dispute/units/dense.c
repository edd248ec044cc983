/* Units of dense layers. */
#include "dispute/units/numbers.h"

UNIT(dense_forward)
{
    const int64_t r = to->at / a->out, o = to->at % a->out;
    struct num sum = constant(0);
    for (int64_t i = 0; i < a->in; i++) sum = fused(in(a->x + r * a->in + i), in(a->w + i * a->out + o), sum);
    if (a->b) sum = add(sum, in(a->b + o));
    return activated(a->activation, a->slope, sum);
}

UNIT(dense_backward_data)
{
    const int64_t r = to->at / a->in, i = to->at % a->in;
    struct num sum = constant(0);
    for (int64_t o = 0; o < a->out; o++)
        sum = fused(in(a->dy + r * a->out + o), in(a->w + i * a->out + o), sum);
    return sum;
}

static struct num weights_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_dense_backward_weights *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = fused(in(a->x + r * a->in + at / a->out), in(a->dy + r * a->out + at % a->out), sum);
    return sum;
}

static struct num bias_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_dense_backward_weights *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = add(sum, in(a->dy + r * a->out + at));
    return sum;
}

UNIT(dense_backward_weights)
{
    return over_cut(&a->cut, to->node, is(to, "dw") ? weights_leaf : bias_leaf, a, to->at);
}

const struct unit_entry unit_dense[] = {UNIT_ENTRY(dense_forward) UNIT_ENTRY(dense_backward_data)
                                            UNIT_ENTRY(dense_backward_weights) UNIT_END};
