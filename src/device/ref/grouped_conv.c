/* Convolutions by groups of channels and their gradients: those of conv.c, where each output sees only the
 * inputs of its own group.
 */
#include "device/ref/conv.h"
#include "device/ref/loops/tree.h"
#include "device/ref/loops/window.h"
#include "device/ref/ref.h"
#include "device/ref/scalar.h"

#include <math.h>
#include <string.h>

static int64_t pixels_in(const struct tr_sliding_window *w)
{
    return (int64_t)w->in_h * w->in_w;
}

static int64_t pixels_out(const struct tr_sliding_window *w)
{
    return (int64_t)w->out_h * w->out_w;
}

/* Channels of a group, and the groups that outputs belong to. */
struct groups {
    int64_t in, out, out_c;
};

static struct groups groups_of(int32_t groups, int32_t in_c, int32_t out_c)
{
    return (struct groups){in_c / groups, out_c / groups, out_c};
}

/* The first input of the group of output o. */
static int64_t first_input(const struct groups *g, int64_t o)
{
    return o / g->out * g->in;
}

/* The weight from input c of its group to output o. */
static int64_t weight_at(const struct groups *g, int64_t tap, int64_t c, int64_t o)
{
    return (tap * g->in + c) * g->out_c + o;
}

tr_status ref_grouped_conv_forward(tr_device *device, const struct tr_op_grouped_conv_forward *arguments)
{
    (void)device;
    const struct tr_op_conv_forward *a = &arguments->conv;
    const struct groups g = groups_of(arguments->groups, a->in_c, a->out_c);
    struct ref_taps list;
    assert(!tr_activation_reads_input(a->activation));
    tr_status status = ref_taps_list(&a->window, &list);
    if (status != TR_OK) return status;
    const int64_t pixels = pixels_out(&a->window);
    for (int64_t i = 0; i < a->rows * pixels; i++) {
        const float *image = a->x + i / pixels * pixels_in(&a->window) * a->in_c;
        float *y = a->y + i * a->out_c;
        for (int64_t o = 0; o < a->out_c; o++) {
            const float *inputs = image + first_input(&g, o);
            y[o] = 0;
            for (int64_t t = list.start[i % pixels]; t < list.start[i % pixels + 1]; t++)
                for (int64_t c = 0; c < g.in; c++)
                    y[o] = fmaf(inputs[list.taps[t].pixel * a->in_c + c],
                                a->w[weight_at(&g, list.taps[t].tap, c, o)], y[o]);
        }
        ref_finish_row(a->out_c, a->b, a->activation, a->slope, y);
    }
    ref_taps_release(&list);
    return TR_OK;
}

/* Output pixels add to the input pixels that they read, as in conv.c. */
tr_status ref_grouped_conv_backward_data(tr_device *device,
                                         const struct tr_op_grouped_conv_backward_data *arguments)
{
    (void)device;
    const struct tr_op_conv_backward_data *a = &arguments->conv;
    const struct groups g = groups_of(arguments->groups, a->in_c, a->out_c);
    struct ref_taps list;
    tr_status status = ref_taps_list(&a->window, &list);
    if (status != TR_OK) return status;
    const int64_t pixels = pixels_out(&a->window), image_size = pixels_in(&a->window) * a->in_c;
    memset(a->dx, 0, (size_t)(a->rows * image_size) * sizeof *a->dx);
    for (int64_t i = 0; i < a->rows * pixels; i++)
        for (int64_t t = list.start[i % pixels]; t < list.start[i % pixels + 1]; t++) {
            float *pixel = a->dx + i / pixels * image_size + list.taps[t].pixel * a->in_c;
            for (int64_t o = 0; o < a->out_c; o++)
                for (int64_t c = 0; c < g.in; c++) {
                    float *dx = pixel + first_input(&g, o) + c;
                    *dx = fmaf(a->dy[i * a->out_c + o], a->w[weight_at(&g, list.taps[t].tap, c, o)], *dx);
                }
        }
    ref_taps_release(&list);
    return TR_OK;
}

struct weights_arguments {
    const struct tr_op_conv_backward_weights *op;
    struct groups groups;
    struct ref_taps list;
};

/* The chain over (row, oh, ow) of a microbatch of x * dy, tap by tap. */
static void weights_leaf(const void *arguments, int32_t microbatch, float *dw)
{
    const struct weights_arguments *with = arguments;
    const struct tr_op_conv_backward_weights *a = with->op;
    const struct groups *g = &with->groups;
    const int64_t pixels = pixels_out(&a->window);
    for (int64_t i = a->cut.row[microbatch] * pixels; i < a->cut.row[microbatch + 1] * pixels; i++) {
        const float *image = a->x + i / pixels * pixels_in(&a->window) * a->in_c;
        for (int64_t t = with->list.start[i % pixels]; t < with->list.start[i % pixels + 1]; t++)
            for (int64_t o = 0; o < a->out_c; o++)
                for (int64_t c = 0; c < g->in; c++) {
                    float *to = dw + weight_at(g, with->list.taps[t].tap, c, o);
                    *to = fmaf(image[with->list.taps[t].pixel * a->in_c + first_input(g, o) + c],
                               a->dy[i * a->out_c + o], *to);
                }
    }
}

tr_status ref_grouped_conv_backward_weights(tr_device *device,
                                            const struct tr_op_grouped_conv_backward_weights *arguments)
{
    (void)device;
    const struct tr_op_conv_backward_weights *a = &arguments->conv;
    struct weights_arguments with = {.op = a, .groups = groups_of(arguments->groups, a->in_c, a->out_c)};
    tr_status status = ref_taps_list(&a->window, &with.list);
    if (status != TR_OK) return status;
    const int64_t size = (int64_t)a->window.kernel_h * a->window.kernel_w * with.groups.in * a->out_c;
    status = ref_tree(&a->cut, size, weights_leaf, &with, a->dw);
    if (status == TR_OK && a->db) status = ref_conv_bias(a);
    ref_taps_release(&with.list);
    return status;
}
