#include "device/gpu/product.h"

#include "device/gpu/internal.h"
#include "device/gpu/lanes.h"

#include "base/fail.h"

#include <assert.h>
#include <stdio.h>

/* Depths of slices are such that a slice takes longer than its numbers take to come from the device's memory:
 * where groups are few, and none computes while another waits, that is deep. Rates are those of an H100. */
static const struct gpu_tile tiles_of_gpus[] = {
    {128, 128, 8, 8, 8, 0.63, 1.0}, /* 256 threads, 17 KiB of shared memory */
    {128, 64, 8, 8, 4, 0.44, 0.82}, /* 256 threads: few columns, as of convolutions with few channels */
    {64, 128, 8, 4, 8, 0.42, 0.79}, /* 256 threads: few rows, as of their weights' gradients */
    {64, 64, 16, 4, 4, 0.37, 0.68}, /* 256 threads, 17 KiB */
    {128, 32, 8, 4, 4, 0.28, 0.53}, /* 256 threads */
    {32, 32, 32, 2, 4, 0.21, 0.44}, /* 128 threads, 18 KiB */
    {4, 32, 64, 1, 1, 0.06, 0.1},   /* 128 threads, 22 KiB: very few rows, as of images with one channel */
};
/* For processors, whose groups take turns on a core, and for devices with little shared memory. Their rates
 * are lower than those measured in large products (0.6 and 0.19), since convolutions look up twice as many
 * places for them. */
static const struct gpu_tile small = {32, 32, 8, 4, 4, 0.1, 0.4}; /* 64 threads, 4.5 KiB */
static const struct gpu_tile low = {4, 32, 8, 1, 4, 0.016, 0.1};  /* 32 threads */

static uint32_t threads_of(const struct gpu_tile *tile)
{
    return (uint32_t)((tile->m / tile->thread_m) * (tile->n / tile->thread_n));
}

static int64_t groups_of(const struct gpu_tile *tile, const struct gpu_product *p)
{
    return gpu_groups(p->m, tile->m) * p->sets * gpu_groups(p->n, tile->n) * p->leaves * p->batches;
}

static bool has_room(const struct gpu_info *info, const struct gpu_tile *tile)
{
    uint64_t shared = 2 * sizeof(float) * (uint64_t)(tile->k * (tile->m + 4 + tile->n + 4));
    return threads_of(tile) <= info->group && shared <= info->shared;
}

const struct gpu_tile *gpu_product_tile(const struct gpu_info *info, int index)
{
    enum { COUNT = sizeof tiles_of_gpus / sizeof tiles_of_gpus[0] };
    for (int i = 0; i < COUNT; i++)
        if (!info->processor && has_room(info, &tiles_of_gpus[i]) && index-- == 0) return &tiles_of_gpus[i];
    /* The last one needs the most room of those for few groups. */
    if (!info->processor && has_room(info, &tiles_of_gpus[COUNT - 1])) return NULL;
    return index == 0 ? &small : index == 1 ? &low : NULL;
}

/* Whether a thread's numbers of a slice lie farther from each other than 32 bits tell. */
static bool is_far(const struct gpu *gpu, const struct gpu_tile *tile, const struct gpu_product *p)
{
    int64_t a = p->a_k ? tile->m * p->a_m : tile->k * p->a_k_step;
    int64_t b = p->b_k ? tile->n * p->b_n : tile->k * p->b_k_step;
    if (p->addressing == GPU_TAPS) return false; /* one pointer for each operand */
    if (p->addressing == GPU_PIXELS) {           /* beside positions of the table, which have 31 bits */
        a = (tile->m + 1) * p->a_image + INT32_MAX;
        b = p->n * p->b_n + INT32_MAX;
    }
    return gpu->far || a > UINT32_MAX || b > UINT32_MAX;
}

/* The tile with which the busiest unit is done first, by what it computes, beyond the edges too. Bits do not
 * depend on it. */
static const struct gpu_tile *choose(const struct gpu *gpu, const struct gpu_product *p)
{
    const struct gpu_tile *tile, *best = NULL;
    double least = 0;
    if (gpu->tile) return gpu->tile;
    for (int i = 0; (tile = gpu_product_tile(&gpu->info, i)); i++) {
        double rounds = (double)gpu_groups(groups_of(tile, p), gpu->info.units), area = tile->m * tile->n;
        double cost = rounds > 1 ? rounds * area / tile->shared : 0;
        if (cost < area / tile->alone) cost = area / tile->alone;
        if (!best || cost < least) {
            best = tile;
            least = cost;
        }
    }
    return best;
}

tr_status gpu_product_run(tr_device *device, const struct gpu_product *p)
{
    const struct gpu *gpu = gpu_of(device);
    const struct gpu_tile *tile = choose(gpu, p);
    /* Kernels that know the activation are compiled ten times as fast: it is computed for each number of a
     * thread. */
    const char *activation = !p->activation                 ? "ACT_NONE"
                             : p->activation == TR_ACT_RELU ? "ACT_RELU"
                                                            : "activation";
    char options[240];
    assert(p->n <= INT32_MAX && p->leaves * p->batches <= INT32_MAX);
    assert(p->batches == 1 || p->addressing == GPU_STRIDES);
    snprintf(
        options, sizeof options,
        "-DPLACES=%d -DA_K=%d -DB_K=%d -DBM=%d -DBN=%d -DBK=%d -DPM=%d -DPN=%d -DACTIVATION=%s -DDISTANCE=%s",
        (int)p->addressing, p->a_k, p->b_k, tile->m, tile->n, tile->k, tile->thread_m, tile->thread_n,
        activation, is_far(gpu, tile, p) ? "int64_t" : "uint32_t");
    int64_t tiles = gpu_groups(p->m, tile->m), y = tiles, z = p->leaves;
    struct gpu_call call;
    gpu_begin(&call, device, "product", options, "product");
    call.launch.threads = threads_of(tile);
    switch (p->addressing) {
    case GPU_STRIDES:
        gpu_long(&call, p->m);
        gpu_long(&call, p->a_m);
        gpu_long(&call, p->a_k_step);
        gpu_long(&call, p->b_k_step);
        gpu_long(&call, p->b_n);
        gpu_long(&call, p->c_m);
        gpu_int(&call, (int32_t)p->leaves);
        gpu_long(&call, p->a_batch);
        gpu_long(&call, p->b_batch);
        gpu_long(&call, p->c_batch);
        z = p->leaves * p->batches;
        break;
    case GPU_PIXELS:
        gpu_long(&call, p->images);
        gpu_long(&call, p->a_image);
        gpu_long(&call, p->b_n);
        gpu_long(&call, p->c_image);
        gpu_array(&call, p->table);
        z = p->sets;
        break;
    case GPU_TAPS:
        gpu_int(&call, (int32_t)tiles);
        gpu_long(&call, p->a_image);
        gpu_long(&call, p->b_image);
        gpu_array(&call, p->table);
        y = tiles * p->sets;
        break;
    }
    gpu_int(&call, (int32_t)p->n);
    gpu_long(&call, p->k);
    gpu_array(&call, p->a);
    gpu_array(&call, p->b);
    gpu_array(&call, p->bias);
    gpu_int(&call, (int32_t)p->activation);
    gpu_float(&call, p->slope);
    gpu_array(&call, p->c);
    gpu_array(&call, p->row);
    gpu_long(&call, p->c_leaf);
    return gpu_run(&call, gpu_groups(p->n, tile->n), y, z);
}

tr_status gpu_sum_columns(tr_device *device, const struct tr_cut *cut, int64_t each, int64_t width,
                          const float *x, float *out, float *leaves)
{
    struct gpu_cut on_device;
    struct gpu_call call;
    int64_t stride;
    if (cut->nodes == 0) return TR_OK;
    float *to = gpu_leaves(cut, width, out, leaves, &stride);
    TR_TRY(gpu_cut(device, cut, &on_device));
    gpu_begin(&call, device, "reduction", "", "sum_columns");
    gpu_long(&call, width);
    gpu_long(&call, each);
    gpu_array(&call, on_device.row);
    gpu_array(&call, x);
    gpu_long(&call, stride);
    gpu_array(&call, to);
    TR_TRY(gpu_run(&call, gpu_groups(width, GPU_COLUMNS), cut->count, 1));
    return gpu_tree(device, cut, width, out, to);
}
