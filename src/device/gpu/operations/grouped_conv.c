/* Convolutions by groups of channels. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"
#include "device/gpu/operations/window.h"
#include "device/gpu/product.h"

#include "base/fail.h"

/* Kernels count the numbers of an image in 32 bits. */
static tr_status begin(struct gpu_call *call, tr_device *device, const char *kernel, int64_t first,
                       int32_t in_c, int32_t out_c, int32_t groups, const struct tr_sliding_window *w)
{
    if ((int64_t)w->in_h * w->in_w * in_c > INT32_MAX || (int64_t)w->out_h * w->out_w * out_c > INT32_MAX)
        return tr_fail(TR_EUNSUPPORTED,
                       "a convolution is too large for a gpu: an image of it has more than 2^31 numbers");
    gpu_begin(call, device, "grouped_conv", "", kernel);
    gpu_long(call, first);
    gpu_int(call, in_c);
    gpu_int(call, out_c);
    gpu_int(call, groups);
    gpu_window(call, w);
    return TR_OK;
}

tr_status gpu_grouped_conv_forward(tr_device *device, const struct tr_op_grouped_conv_forward *arguments)
{
    const struct tr_op_conv_forward *a = &arguments->conv;
    struct gpu_call call;
    TR_TRY(begin(&call, device, "grouped_conv_forward", a->rows, a->in_c, a->out_c, arguments->groups,
                 &a->window));
    gpu_int(&call, (int32_t)a->activation);
    gpu_float(&call, a->slope);
    gpu_array(&call, a->x);
    gpu_array(&call, a->w);
    gpu_array(&call, a->b);
    gpu_array(&call, a->y);
    return gpu_run_images(&call, (int64_t)a->window.out_h * a->window.out_w * a->out_c, a->rows);
}

tr_status gpu_grouped_conv_backward_data(tr_device *device,
                                         const struct tr_op_grouped_conv_backward_data *arguments)
{
    const struct tr_op_conv_backward_data *a = &arguments->conv;
    struct gpu_call call;
    TR_TRY(begin(&call, device, "grouped_conv_backward_data", a->rows, a->in_c, a->out_c, arguments->groups,
                 &a->window));
    gpu_array(&call, a->dy);
    gpu_array(&call, a->w);
    gpu_array(&call, a->dx);
    return gpu_run_images(&call, (int64_t)a->window.in_h * a->window.in_w * a->in_c, a->rows);
}

tr_status gpu_grouped_conv_backward_weights(tr_device *device,
                                            const struct tr_op_grouped_conv_backward_weights *arguments)
{
    const struct tr_op_conv_backward_weights *a = &arguments->conv;
    const struct tr_sliding_window *w = &a->window;
    int64_t size = (int64_t)w->kernel_h * w->kernel_w * (a->in_c / arguments->groups) * a->out_c, stride;
    struct gpu_cut cut;
    struct gpu_call call;
    void *scratch = NULL;
    if (a->cut.nodes == 0) return TR_OK;
    if (a->cut.nodes != a->cut.count)
        TR_TRY(gpu_scratch(device, (size_t)(size * a->cut.count) * sizeof(float), &scratch));
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    float *leaves = gpu_leaves(&a->cut, size, a->dw, scratch, &stride);
    TR_TRY(
        begin(&call, device, "grouped_conv_backward_weights", size, a->in_c, a->out_c, arguments->groups, w));
    gpu_array(&call, cut.row);
    gpu_array(&call, a->x);
    gpu_array(&call, a->dy);
    gpu_long(&call, stride);
    gpu_array(&call, leaves);
    TR_TRY(gpu_run(&call, gpu_groups(size, call.launch.threads), a->cut.count, 1));
    TR_TRY(gpu_tree(device, &a->cut, size, a->dw, leaves));
    if (!a->db) return TR_OK;
    return gpu_sum_columns(device, &a->cut, (int64_t)w->out_h * w->out_w, a->out_c, a->dy, a->db, scratch);
}
