/* Units of direct convolutions. */
#include "dispute/units/numbers.h"

UNIT(conv_forward)
{
    const int64_t pixels = pixels_out(&a->window), p = to->at / a->out_c, o = to->at % a->out_c;
    const float *image = a->x + p / pixels * pixels_in(&a->window) * a->in_c;
    struct num sum = constant(0);
    for (int64_t tap = 0; tap < taps_of(&a->window); tap++) {
        const int64_t pixel = pixel_of(&a->window, p % pixels, tap);
        for (int64_t c = 0; pixel >= 0 && c < a->in_c; c++)
            sum = fused(in(image + pixel * a->in_c + c), in(a->w + (tap * a->in_c + c) * a->out_c + o), sum);
    }
    if (a->b) sum = add(sum, in(a->b + o));
    return activated(a->activation, a->slope, sum);
}

UNIT(conv_backward_data)
{
    const int64_t pixels = pixels_in(&a->window), p = to->at / a->in_c, c = to->at % a->in_c;
    const float *dy = a->dy + p / pixels * pixels_out(&a->window) * a->out_c;
    struct num sum = constant(0);
    for (int64_t output = 0; output < pixels_out(&a->window); output++) {
        const int64_t tap = tap_of(&a->window, output, p % pixels);
        for (int64_t o = 0; tap >= 0 && o < a->out_c; o++)
            sum = fused(in(dy + output * a->out_c + o), in(a->w + (tap * a->in_c + c) * a->out_c + o), sum);
    }
    return sum;
}

static struct num weights_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_conv_backward_weights *a = arguments;
    const int64_t pixels = pixels_out(&a->window), o = at % a->out_c, c = at / a->out_c % a->in_c;
    const int64_t tap = at / a->out_c / a->in_c;
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
    const struct tr_op_conv_backward_weights *a = arguments;
    const int64_t pixels = pixels_out(&a->window);
    struct num sum = constant(0);
    for (int64_t p = cut_begin(&a->cut, microbatch) * pixels; p < cut_end(&a->cut, microbatch) * pixels; p++)
        sum = add(sum, in(a->dy + p * a->out_c + at));
    return sum;
}

UNIT(conv_backward_weights)
{
    return over_cut(&a->cut, to->node, is(to, "dw") ? weights_leaf : bias_leaf, a, to->at);
}

const struct unit_entry unit_window[] = {UNIT_ENTRY(conv_forward) UNIT_ENTRY(conv_backward_data)
                                             UNIT_ENTRY(conv_backward_weights) UNIT_END};
