/* Convolutions and their gradients. Taps outside the image are not part of any chain. */
#include "device/ref/conv.h"

#include "device/ref/loops/chain.h"
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/tree.h"
#include "device/ref/loops/window.h"

#include "base/alloc.h"

#include <string.h>

static int64_t pixels_in(const struct tr_sliding_window *w)
{
    return (int64_t)w->in_h * w->in_w;
}

static int64_t pixels_out(const struct tr_sliding_window *w)
{
    return (int64_t)w->out_h * w->out_w;
}

tr_status ref_conv_forward(tr_device *device, const struct tr_op_conv_forward *a)
{
    (void)device;
    assert(!tr_activation_reads_input(a->activation));
    struct ref_taps list;
    tr_status status = ref_taps_list(&a->window, &list);
    if (status != TR_OK) return status;
    int64_t pixels = pixels_out(&a->window);
    for (int64_t r = 0; r < a->rows; r++) {
        const float *image = a->x + r * pixels_in(&a->window) * a->in_c;
        for (int64_t p = 0; p < pixels; p++) {
            float *y = a->y + (r * pixels + p) * a->out_c;
            memset(y, 0, (size_t)a->out_c * sizeof *y);
            for (int64_t t = list.start[p]; t < list.start[p + 1]; t++)
                ref_chain_rows(a->in_c, a->out_c, image + list.taps[t].pixel * a->in_c,
                               a->w + (int64_t)list.taps[t].tap * a->in_c * a->out_c, y);
            ref_finish_row(a->out_c, a->b, a->activation, a->slope, y);
        }
    }
    ref_taps_release(&list);
    return TR_OK;
}

/* Output pixels add to the input pixels that they read, in ascending order, so that each dx has its chain
 * in the order of the definition.
 */
tr_status ref_conv_backward_data(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    (void)device;
    const struct tr_sliding_window *window = &a->window;
    struct ref_taps list;
    tr_status status = ref_taps_list(window, &list);
    if (status != TR_OK) return status;
    float *transposed = ref_transposed((int64_t)window->kernel_h * window->kernel_w, a->in_c, a->out_c, a->w);
    if (!transposed) {
        ref_taps_release(&list);
        return TR_ENOMEM;
    }
    int64_t pixels = pixels_out(window), image_size = pixels_in(window) * a->in_c;
    memset(a->dx, 0, (size_t)(a->rows * image_size) * sizeof *a->dx);
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t p = 0; p < pixels; p++) {
            const float *dy = a->dy + (r * pixels + p) * a->out_c;
            for (int64_t t = list.start[p]; t < list.start[p + 1]; t++)
                ref_chain_rows(a->out_c, a->in_c, dy,
                               transposed + (int64_t)list.taps[t].tap * a->in_c * a->out_c,
                               a->dx + r * image_size + list.taps[t].pixel * a->in_c);
        }
    }
    tr_free(transposed);
    ref_taps_release(&list);
    return TR_OK;
}

struct weights_arguments {
    const struct tr_op_conv_backward_weights *op;
    struct ref_taps list;
};

/* The chain over (row, oh, ow) of a microbatch of x * dy, tap by tap. */
static void weights_leaf(const void *arguments, int32_t microbatch, float *dw)
{
    const struct weights_arguments *with = arguments;
    const struct tr_op_conv_backward_weights *a = with->op;
    int64_t pixels = pixels_out(&a->window);
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++) {
        const float *image = a->x + r * pixels_in(&a->window) * a->in_c;
        for (int64_t p = 0; p < pixels; p++) {
            const float *dy = a->dy + (r * pixels + p) * a->out_c;
            for (int64_t t = with->list.start[p]; t < with->list.start[p + 1]; t++)
                ref_chain_outer(a->in_c, a->out_c, image + with->list.taps[t].pixel * a->in_c, dy,
                                dw + (int64_t)with->list.taps[t].tap * a->in_c * a->out_c);
        }
    }
}

/* The sum chain over (row, oh, ow) of a microbatch of dy. */
static void bias_leaf(const void *arguments, int32_t microbatch, float *db)
{
    const struct tr_op_conv_backward_weights *a = arguments;
    int64_t pixels = pixels_out(&a->window);
    for (int64_t p = a->cut.row[microbatch] * pixels; p < a->cut.row[microbatch + 1] * pixels; p++)
        for (int64_t o = 0; o < a->out_c; o++) db[o] += a->dy[p * a->out_c + o];
}

tr_status ref_conv_bias(const struct tr_op_conv_backward_weights *a)
{
    return ref_tree(&a->cut, a->out_c, bias_leaf, a, a->db);
}

tr_status ref_conv_backward_weights(tr_device *device, const struct tr_op_conv_backward_weights *a)
{
    (void)device;
    struct weights_arguments with = {.op = a};
    tr_status status = ref_taps_list(&a->window, &with.list);
    if (status != TR_OK) return status;
    int64_t size = (int64_t)a->window.kernel_h * a->window.kernel_w * a->in_c * a->out_c;
    status = ref_tree(&a->cut, size, weights_leaf, &with, a->dw);
    if (status == TR_OK && a->db) status = ref_conv_bias(a);
    ref_taps_release(&with.list);
    return status;
}
