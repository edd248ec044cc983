/* The optimizer: update rules, and the sums for clipping by norm. */
#include "device/gpu/gpu.h"
#include "device/gpu/lanes.h"
#include "device/gpu/operations/operations.h"

#include "base/fail.h"

#define SQUARES_BLOCK 4096

tr_status gpu_update(tr_device *device, const struct tr_op_update *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "update", "", "update");
    gpu_long(&call, a->count);
    gpu_int(&call, (int32_t)a->rule);
    gpu_int(&call, a->nesterov);
    gpu_int(&call, a->clip_norm);
    const float settings[] = {a->rate_factor, a->beta1, a->beta2, a->epsilon, a->decay, a->l2, a->clip_value};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) gpu_float(&call, settings[i]);
    gpu_array(&call, a->grad);
    gpu_array(&call, a->w);
    gpu_array(&call, a->m);
    gpu_array(&call, a->v);
    gpu_array(&call, a->vmax);
    gpu_array(&call, a->ema);
    gpu_memory(&call, a->scalars, sizeof(uint32_t));
    return gpu_run_each(&call, a->count);
}

tr_status gpu_advance(tr_device *device, const struct tr_op_advance *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "update", "", "advance");
    gpu_long(&call, a->count);
    gpu_float(&call, a->rate_factor);
    gpu_float(&call, a->factor);
    gpu_float(&call, a->decay);
    gpu_int(&call, a->scalars != NULL);
    gpu_array(&call, a->direction);
    gpu_array(&call, a->squares);
    gpu_array(&call, a->w);
    gpu_array(&call, a->ema);
    gpu_memory(&call, a->scalars, sizeof(uint32_t));
    return gpu_run_each(&call, a->count);
}

tr_status gpu_sum_squares(tr_device *device, const struct tr_op_sum_squares *a)
{
    int64_t blocks = gpu_groups(a->count, SQUARES_BLOCK);
    void *scratch;
    TR_TRY(gpu_scratch(device, (size_t)blocks * sizeof(float), &scratch));
    const float *sums = scratch;
    struct gpu_call call;
    gpu_begin(&call, device, "update", "", "block_squares");
    gpu_long(&call, a->count);
    gpu_array(&call, a->x);
    gpu_array(&call, sums);
    TR_TRY(gpu_run_lanes(&call, blocks));
    gpu_begin(&call, device, "update", "", "sum_blocks");
    gpu_long(&call, blocks);
    gpu_array(&call, sums);
    gpu_array(&call, a->out);
    return gpu_run(&call, 1, 1, 1);
}

tr_status gpu_clip_scale(tr_device *device, const struct tr_op_clip_scale *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "update", "", "clip_scale");
    gpu_long(&call, a->count);
    gpu_float(&call, a->max_norm);
    gpu_array(&call, a->squares);
    gpu_array(&call, a->norm);
    gpu_memory(&call, a->scalars, sizeof(uint32_t));
    return gpu_run(&call, 1, 1, 1);
}

tr_status gpu_hold(tr_device *device, const struct tr_op_hold *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "update", "", "hold");
    gpu_long(&call, a->count);
    gpu_array(&call, a->x);
    gpu_memory(&call, a->scalars, sizeof(uint32_t));
    return gpu_run_each(&call, a->count);
}
