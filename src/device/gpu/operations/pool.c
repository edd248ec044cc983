/* Pools. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"

static const char *options(enum tr_pool kind, bool count_border)
{
    if (kind == TR_POOL_MAX) return "-DAVERAGE=0";
    return count_border ? "-DAVERAGE=2" : "-DAVERAGE=1";
}

static void window_arguments(struct gpu_call *call, const struct tr_sliding_window *w)
{
    const int32_t parameters[] = {w->in_h,       w->in_w,       w->out_h,    w->out_w,
                                  w->kernel_h,   w->kernel_w,   w->stride_h, w->stride_w,
                                  w->dilation_h, w->dilation_w, w->pad_top,  w->pad_left};
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) gpu_int(call, parameters[i]);
}

/* Threads for the `values` of an image; groups walk through the images. */
static tr_status run_images(struct gpu_call *call, int64_t values, int64_t rows)
{
    return gpu_run(call, gpu_groups(values, call->launch.threads), gpu_walkers(rows), 1);
}

tr_status gpu_pool_forward(tr_device *device, const struct tr_op_pool_forward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "pool", options(a->kind, a->count_border), "pool_forward");
    gpu_long(&call, a->rows);
    gpu_int(&call, a->channels);
    window_arguments(&call, &a->window);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    gpu_memory(&call, a->kind == TR_POOL_MAX ? a->taken : NULL, sizeof *a->taken);
    return run_images(&call, (int64_t)a->window.out_h * a->window.out_w * a->channels, a->rows);
}

tr_status gpu_pool_backward(tr_device *device, const struct tr_op_pool_backward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "pool", options(a->kind, a->count_border), "pool_backward");
    gpu_long(&call, a->rows);
    gpu_int(&call, a->channels);
    window_arguments(&call, &a->window);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->taken);
    gpu_array(&call, a->relu_output);
    gpu_array(&call, a->dx);
    return run_images(&call, (int64_t)a->window.in_h * a->window.in_w * a->channels, a->rows);
}
