/* Products of matrices, pixels by channels. With strides, the pixels that outputs read are gathered in the
 * shared scratch, and gradients of pixels are spread from there.
 */
#include "device/cpu/convolutions/conv_pointwise.h"

#include "base/fail.h"
#include "device/cpu/conv_strides.h"
#include "device/cpu/products/gradient.h"
#include "device/cpu/products/product.h"

/* Whether outputs read all pixels. */
static bool reads_all(const struct tr_sliding_window *w)
{
    return w->out_h == w->in_h && w->out_w == w->in_w;
}

bool conv_pointwise_suits(const struct cpu_device *cpu, const struct tr_sliding_window *w, int64_t in_c)
{
    return cpu_conv_is_pointwise(w) && (reads_all(w) || in_c > cpu->blocks.conv_in_place);
}

tr_status conv_pointwise(const struct conv_call *call)
{
    const struct tr_sliding_window *window = call->window;
    struct product product = {.rows = call->rows * window->out_h * window->out_w,
                              .depth = call->source_c,
                              .columns = call->target_c,
                              .a = call->source,
                              .b = call->weights,
                              .transposed = call->backward,
                              .c = call->target,
                              .bias = call->bias,
                              .activation = call->activation,
                              .slope = call->slope};
    if (reads_all(window)) return product_compute(call->cpu, &product);
    const struct conv_strides strides = {window, call->rows,
                                         call->backward ? call->target_c : call->source_c};
    float *pixels;
    TR_TRY(cpu_conv_strides_reserve(call->cpu, &strides, &pixels));
    if (call->backward) {
        product.c = pixels;
        TR_TRY(product_compute(call->cpu, &product));
        cpu_conv_spread(call->cpu, &strides, pixels, call->target);
        return TR_OK;
    }
    cpu_conv_gather(call->cpu, &strides, call->source, pixels);
    product.a = pixels;
    return product_compute(call->cpu, &product);
}

tr_status conv_pointwise_gradient(struct cpu_device *cpu, const struct tr_op_conv_backward_weights *a)
{
    struct gradient gradient = {.height = a->in_c,
                                .width = a->out_c,
                                .a = a->x,
                                .b = a->dy,
                                .cut = &a->cut,
                                .repeat = (int64_t)a->window.out_h * a->window.out_w,
                                .to = a->dw,
                                .bias = a->db};
    if (reads_all(&a->window)) return gradient_compute(cpu, &gradient);
    const struct conv_strides strides = {&a->window, a->cut.count > 0 ? a->cut.row[a->cut.count] : 0,
                                         a->in_c};
    float *pixels;
    TR_TRY(cpu_conv_strides_reserve(cpu, &strides, &pixels));
    cpu_conv_gather(cpu, &strides, a->x, pixels);
    gradient.a = pixels;
    return gradient_compute(cpu, &gradient);
}
