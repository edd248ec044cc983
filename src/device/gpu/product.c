#include "device/gpu/product.h"

#include "device/gpu/internal.h"
#include "device/gpu/lanes.h"

#include "base/fail.h"

#include <assert.h>
#include <stdio.h>

static const struct gpu_tile large = {128, 128, 16, 8, 8}; /* 256 threads, 33 KiB of shared memory */
static const struct gpu_tile middle = {64, 64, 16, 4, 4};  /* 256 threads, 17 KiB */
static const struct gpu_tile small = {32, 32, 8, 4, 4};    /* 64 threads, 4.5 KiB */
static const struct gpu_tile low = {4, 32, 8, 1, 4}; /* 32 threads: few rows, as of images with one channel */

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
    const struct gpu_tile *const tiles[] = {&large, &middle, &small, &low};
    for (int i = 0; i < 4; i++) {
        if (i < 2 && (info->processor || !has_room(info, tiles[i]))) continue;
        if (index-- == 0) return tiles[i];
    }
    return NULL;
}

/* The largest tile that keeps the whole device busy. Bits do not depend on it. */
static const struct gpu_tile *choose(const struct gpu *gpu, const struct gpu_product *p)
{
    const struct gpu_tile *tile;
    if (gpu->tile) return gpu->tile;
    if (p->m <= low.m) return &low;
    for (int i = 0; (tile = gpu_product_tile(&gpu->info, i)) != &small; i++)
        if (groups_of(tile, p) >= gpu->info.units) break;
    return tile;
}

tr_status gpu_product_run(tr_device *device, const struct gpu_product *p)
{
    const struct gpu_tile *tile = choose(gpu_of(device), p);
    char options[160];
    assert(p->n <= INT32_MAX && p->leaves * p->batches <= INT32_MAX);
    assert(p->batches == 1 || p->addressing == GPU_STRIDES);
    snprintf(options, sizeof options, "-DPLACES=%d -DA_K=%d -DB_K=%d -DBM=%d -DBN=%d -DBK=%d -DPM=%d -DPN=%d",
             (int)p->addressing, p->a_k, p->b_k, tile->m, tile->n, tile->k, tile->thread_m, tile->thread_n);
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
