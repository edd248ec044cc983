/* Softmax and losses. */
#include "device/gpu/gpu.h"
#include "device/gpu/lanes.h"
#include "device/gpu/operations/operations.h"

tr_status gpu_softmax_forward(tr_device *device, const struct tr_op_softmax_forward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "softmax_forward");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_softmax_backward(tr_device *device, const struct tr_op_softmax_backward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "softmax_backward");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_array(&call, a->y);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_softmax_cross_entropy(tr_device *device, const struct tr_op_softmax_cross_entropy *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "softmax_cross_entropy");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->classes);
    gpu_float(&call, a->smoothing);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->label);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_soft_cross_entropy(tr_device *device, const struct tr_op_soft_cross_entropy *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "soft_cross_entropy");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->classes);
    gpu_float(&call, a->smoothing);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->target);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_mean_squared_error(tr_device *device, const struct tr_op_mean_squared_error *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "mean_squared_error");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->target);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_binary_cross_entropy(tr_device *device, const struct tr_op_binary_cross_entropy *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "binary_cross_entropy");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->target);
    gpu_array(&call, a->weight);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_huber_error(tr_device *device, const struct tr_op_huber_error *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "huber_error");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_float(&call, a->delta);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->target);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_focal_cross_entropy(tr_device *device, const struct tr_op_focal_cross_entropy *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "focal_cross_entropy");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->classes);
    gpu_float(&call, a->gamma);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->label);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_quantile_error(tr_device *device, const struct tr_op_quantile_error *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "quantile_error");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_size(&call, a->each);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->target);
    gpu_array(&call, a->quantile);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_poisson_error(tr_device *device, const struct tr_op_poisson_error *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "poisson_error");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_int(&call, a->logs);
    gpu_float(&call, a->epsilon);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->target);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_contrastive_error(tr_device *device, const struct tr_op_contrastive_error *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "contrastive_error");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_float(&call, a->margin);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->label);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_triplet_error(tr_device *device, const struct tr_op_triplet_error *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "triplet_error");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_int(&call, a->squared);
    gpu_float(&call, a->margin);
    gpu_float(&call, a->scale);
    gpu_array(&call, a->x);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_weigh_rows(tr_device *device, const struct tr_op_weigh_rows *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "weigh_rows");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_array(&call, a->weight);
    gpu_array(&call, a->label);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_mean_labelled(tr_device *device, const struct tr_op_mean_labelled *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "softmax", "", "mean_labelled");
    gpu_long(&call, a->rows);
    gpu_long(&call, a->places);
    gpu_size(&call, a->classes);
    gpu_array(&call, a->label);
    gpu_array(&call, a->each_loss);
    gpu_array(&call, a->each_correct);
    gpu_array(&call, a->weight);
    gpu_array(&call, a->loss);
    gpu_array(&call, a->correct);
    gpu_array(&call, a->dx);
    return gpu_run_lanes(&call, a->rows);
}
