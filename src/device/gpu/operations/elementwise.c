/* Elementwise operations. */
#include "device/gpu/gpu.h"
#include "device/gpu/lanes.h"
#include "device/gpu/operations/operations.h"

#include "base/fail.h"

tr_status gpu_activation_forward(tr_device *device, const struct tr_op_activation_forward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "activation_forward");
    gpu_long(&call, a->count);
    gpu_int(&call, (int32_t)a->activation);
    gpu_float(&call, a->slope);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, a->count);
}

tr_status gpu_activation_backward(tr_device *device, const struct tr_op_activation_backward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "activation_backward");
    gpu_long(&call, a->count);
    gpu_int(&call, (int32_t)a->activation);
    gpu_float(&call, a->slope);
    gpu_array(&call, tr_activation_reads_input(a->activation) ? a->x : a->y);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->dx);
    return gpu_run_each(&call, a->count);
}

tr_status gpu_add(tr_device *device, const struct tr_op_add *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "add");
    gpu_long(&call, a->count);
    gpu_array(&call, a->a);
    gpu_array(&call, a->b);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, a->count);
}

tr_status gpu_scale(tr_device *device, const struct tr_op_scale *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "scale");
    gpu_long(&call, a->count);
    gpu_float(&call, a->factor);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, a->count);
}

tr_status gpu_fill(tr_device *device, const struct tr_op_fill *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "fill");
    gpu_long(&call, a->count);
    gpu_float(&call, a->value);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, a->count);
}

static tr_status copy_columns(tr_device *device, int64_t rows, int64_t width, int64_t from_step,
                              const float *from, int64_t to_step, float *to)
{
    if (width == 0) return TR_OK;
    int shift = gpu_shift(device, width);
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "copy_columns");
    gpu_long(&call, rows);
    gpu_size(&call, width);
    gpu_int(&call, shift);
    gpu_long(&call, from_step);
    gpu_long(&call, to_step);
    gpu_array(&call, from);
    gpu_array(&call, to);
    return gpu_run_lines(&call, shift, rows, width);
}

static int64_t all_widths(int32_t parts, const int64_t *width)
{
    int64_t all = 0;
    for (int32_t i = 0; i < parts; i++) all += width[i];
    return all;
}

tr_status gpu_join_columns(tr_device *device, const struct tr_op_join_columns *a)
{
    int64_t all = all_widths(a->parts, a->width), at = 0;
    for (int32_t i = 0; i < a->parts; at += a->width[i++])
        TR_TRY(copy_columns(device, a->rows, a->width[i], a->width[i], a->x[i], all, a->y + at));
    return TR_OK;
}

tr_status gpu_split_columns(tr_device *device, const struct tr_op_split_columns *a)
{
    int64_t all = all_widths(a->parts, a->width), at = 0;
    for (int32_t i = 0; i < a->parts; at += a->width[i++])
        if (a->y[i]) TR_TRY(copy_columns(device, a->rows, a->width[i], all, a->x + at, a->width[i], a->y[i]));
    return TR_OK;
}

tr_status gpu_to_labels(tr_device *device, const struct tr_op_to_labels *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "to_labels");
    gpu_long(&call, a->count);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, a->count);
}

tr_status gpu_multiply(tr_device *device, const struct tr_op_multiply *a)
{
    struct gpu_call call;
    if (a->spatial == 1) {
        gpu_begin(&call, device, "elementwise", "", "multiply_each");
        gpu_long(&call, a->rows * a->width);
        gpu_array(&call, a->a);
        gpu_array(&call, a->b);
        gpu_array(&call, a->y);
        return gpu_run_each(&call, a->rows * a->width);
    }
    int shift = gpu_shift(device, a->width);
    gpu_begin(&call, device, "elementwise", "", "multiply");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_array(&call, a->a);
    gpu_array(&call, a->b);
    gpu_array(&call, a->y);
    return gpu_run_channels(&call, shift, a->width, a->spatial, a->rows);
}

tr_status gpu_multiply_sum(tr_device *device, const struct tr_op_multiply_sum *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "elementwise", "", "multiply_sum");
    gpu_long(&call, a->rows * a->width);
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->width);
    gpu_array(&call, a->a);
    gpu_array(&call, a->b);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, a->rows * a->width);
}
