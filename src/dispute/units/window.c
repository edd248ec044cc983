/* Units of direct convolutions, of all channels and by groups: an output depends on the `in_c` / `groups`
 * inputs of its group.
 */
#include "dispute/units/numbers.h"

static struct num forward(const struct tr_op_conv_forward *a, int64_t groups, const struct tr_unit_output *to)
{
    const int64_t pixels = pixels_out(&a->window), p = to->at / a->out_c, o = to->at % a->out_c;
    const int64_t inputs = a->in_c / groups, first = o / (a->out_c / groups) * inputs;
    const float *image = a->x + p / pixels * pixels_in(&a->window) * a->in_c + first;
    struct num sum = constant(0);
    for (int64_t tap = 0; tap < taps_of(&a->window); tap++) {
        const int64_t pixel = pixel_of(&a->window, p % pixels, tap);
        for (int64_t c = 0; pixel >= 0 && c < inputs; c++)
            sum = fused(in(image + pixel * a->in_c + c), in(a->w + (tap * inputs + c) * a->out_c + o), sum);
    }
    if (a->b) sum = add(sum, in(a->b + o));
    return activated(a->activation, a->slope, sum);
}

UNIT(conv_forward)
{
    return forward(a, 1, to);
}

UNIT(grouped_conv_forward)
{
    return forward(&a->conv, a->groups, to);
}

static struct num backward_data(const struct tr_op_conv_backward_data *a, int64_t groups,
                                const struct tr_unit_output *to)
{
    const int64_t pixels = pixels_in(&a->window), p = to->at / a->in_c, c = to->at % a->in_c;
    const int64_t inputs = a->in_c / groups, outputs = a->out_c / groups, first = c / inputs * outputs;
    const float *dy = a->dy + p / pixels * pixels_out(&a->window) * a->out_c;
    struct num sum = constant(0);
    for (int64_t output = 0; output < pixels_out(&a->window); output++) {
        const int64_t tap = tap_of(&a->window, output, p % pixels);
        for (int64_t o = first; tap >= 0 && o < first + outputs; o++)
            sum = fused(in(dy + output * a->out_c + o), in(a->w + (tap * inputs + c % inputs) * a->out_c + o),
                        sum);
    }
    return sum;
}

UNIT(conv_backward_data)
{
    return backward_data(a, 1, to);
}

UNIT(grouped_conv_backward_data)
{
    return backward_data(&a->conv, a->groups, to);
}

/* The arguments of a gradient of weights, with groups. */
struct weights {
    const struct tr_op_conv_backward_weights *conv;
    int64_t groups;
};

static struct num weights_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct weights *weights = arguments;
    const struct tr_op_conv_backward_weights *a = weights->conv;
    const int64_t inputs = a->in_c / weights->groups, pixels = pixels_out(&a->window), o = at % a->out_c;
    const int64_t c = at / a->out_c % inputs + o / (a->out_c / weights->groups) * inputs;
    const int64_t tap = at / a->out_c / inputs;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        for (int64_t p = 0; p < pixels; p++) {
            const int64_t pixel = pixel_of(&a->window, p, tap);
            if (pixel < 0) continue;
            sum = fused(in(a->x + (r * pixels_in(&a->window) + pixel) * a->in_c + c),
                        in(a->dy + (r * pixels + p) * a->out_c + o), sum);
        }
    return sum;
}

static struct num bias_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_conv_backward_weights *a = ((const struct weights *)arguments)->conv;
    const int64_t pixels = pixels_out(&a->window);
    struct num sum = constant(0);
    for (int64_t p = cut_begin(&a->cut, microbatch) * pixels; p < cut_end(&a->cut, microbatch) * pixels; p++)
        sum = add(sum, in(a->dy + p * a->out_c + at));
    return sum;
}

UNIT(conv_backward_weights)
{
    const struct weights weights = {a, 1};
    return over_cut(&a->cut, to->node, is(to, "dw") ? weights_leaf : bias_leaf, &weights, to->at);
}

UNIT(grouped_conv_backward_weights)
{
    const struct weights weights = {&a->conv, a->groups};
    return over_cut(&a->conv.cut, to->node, is(to, "conv.dw") ? weights_leaf : bias_leaf, &weights, to->at);
}

const struct unit_entry unit_window[] = {UNIT_ENTRY(conv_forward) UNIT_ENTRY(conv_backward_data) UNIT_ENTRY(
    conv_backward_weights) UNIT_ENTRY(grouped_conv_forward) UNIT_ENTRY(grouped_conv_backward_data)
                                             UNIT_ENTRY(grouped_conv_backward_weights) UNIT_END};
