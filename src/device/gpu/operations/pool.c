/* Pools. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"
#include "device/gpu/operations/window.h"

static const char *options(enum tr_pool kind, bool count_border)
{
    if (kind == TR_POOL_MAX) return "-DAVERAGE=0";
    return count_border ? "-DAVERAGE=2" : "-DAVERAGE=1";
}

tr_status gpu_pool_forward(tr_device *device, const struct tr_op_pool_forward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "pool", options(a->kind, a->count_border), "pool_forward");
    gpu_long(&call, a->rows);
    gpu_int(&call, a->channels);
    gpu_window(&call, &a->window);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    gpu_memory(&call, a->kind == TR_POOL_MAX ? a->taken : NULL, sizeof *a->taken);
    return gpu_run_images(&call, (int64_t)a->window.out_h * a->window.out_w * a->channels, a->rows);
}

tr_status gpu_pool_backward(tr_device *device, const struct tr_op_pool_backward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "pool", options(a->kind, a->count_border), "pool_backward");
    gpu_long(&call, a->rows);
    gpu_int(&call, a->channels);
    gpu_window(&call, &a->window);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->taken);
    gpu_array(&call, a->relu_output);
    gpu_array(&call, a->dx);
    return gpu_run_images(&call, (int64_t)a->window.in_h * a->window.in_w * a->channels, a->rows);
}
