/* Attention and rotary positions. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"
#include "device/rotary.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/math.h"

#include <stdio.h>
#include <string.h>

/* ---- attention ---- */

#define MOST_WINDOW (1 << 29) /* the kernel adds it to numbers of tokens */

/* A group's queries and keys; `sums`: most columns that it computes, at least 32. */
struct tile {
    int queries, keys, rows, sums;
};

static const struct tile large = {64, 64, 4, 128}; /* 256 threads, 27 KiB of shared memory */
static const struct tile small = {32, 32, 4, 64};  /* 64 threads, 10 KiB */
static const struct tile few = {4, 64, 1, 128};    /* 64 threads: few queries that see many keys */

static uint32_t threads_of(const struct tile *tile)
{
    return (uint32_t)(tile->queries / tile->rows * (tile->keys / 4));
}

/* Where keys are older than the queries, text is generated token by token; where all queries see all keys of
   another sequence, they may be many. Bits do not depend on the choice. */
static const struct tile *choose(tr_device *device, const struct tr_attention *at)
{
    enum { SHARED = 28 << 10 };
    const struct gpu_info *info = gpu_info_of(device);
    if (at->key_offset != at->offset && (at->causal || at->window > 0)) return &few;
    bool fits = threads_of(&large) <= info->group && info->shared >= SHARED;
    return fits && !info->processor ? &large : &small;
}

/* Begins a launch for `heads` heads of an example, with the arguments that all the kernels take; *groups
   for each tile of queries, or keys. */
static void begin(struct gpu_call *call, tr_device *device, const char *kernel, const struct tr_attention *at,
                  int64_t heads, int64_t *groups)
{
    const struct tile *tile = choose(device, at);
    char options[64];
    /* Compilers for processors take ten seconds or more for each variant, so these get only one. */
    int sums = 32, most = gpu_info_of(device)->processor ? sums : tile->sums;
    while (sums < at->size && sums < most) sums *= 2;
    snprintf(options, sizeof options, "-DBQ=%d -DBK=%d -DPM=%d -DSIZE=%d", tile->queries, tile->keys,
             tile->rows, sums);
    *groups = at->examples * heads * gpu_groups(at->size, sums);
    gpu_begin(call, device, "attention", options, kernel);
    call->launch.threads = threads_of(tile);
    gpu_size(call, at->heads);
    gpu_size(call, at->kv_heads);
    gpu_size(call, at->size);
    gpu_size(call, at->window < MOST_WINDOW ? at->window : MOST_WINDOW);
    gpu_int(call, at->causal);
    gpu_float(call, at->scale);
    gpu_array(call, at->offset);
    gpu_array(call, at->key_offset);
    gpu_array(call, at->q);
    gpu_array(call, at->k);
    gpu_array(call, at->v);
    gpu_long(call, at->q_step);
    gpu_long(call, at->kv_step);
    gpu_float(call, at->rate);
    gpu_uint(call, at->key[0]);
    gpu_uint(call, at->key[1]);
    gpu_uint(call, at->layer);
    gpu_uint(call, at->first_example);
    gpu_memory(call, at->rate > 0 ? at->scalars : NULL, sizeof(uint32_t));
}

/* Runs it. Only the device knows how many tiles an example has: groups loop over tiles, and there are
   enough to keep the device busy. */
static tr_status run(struct gpu_call *call, tr_device *device, int64_t groups)
{
    enum { MOST = 256, GROUPS_OF_A_UNIT = 8 };
    int64_t wanted =
        groups > 0 ? gpu_groups((int64_t)gpu_info_of(device)->units * GROUPS_OF_A_UNIT, groups) : 1;
    return gpu_run(call, groups, wanted < MOST ? wanted : MOST, 1);
}

tr_status gpu_attention_forward(tr_device *device, const struct tr_op_attention_forward *a)
{
    int64_t groups;
    struct gpu_call call;
    begin(&call, device, "attention_forward", &a->at, a->at.heads, &groups);
    gpu_array(&call, a->at.shift);
    gpu_array(&call, a->at.inv);
    gpu_array(&call, a->y);
    return run(&call, device, groups);
}

static void backward_arguments(struct gpu_call *call, const struct tr_op_attention_backward *a)
{
    gpu_array(call, a->at.shift);
    gpu_array(call, a->at.inv);
    gpu_array(call, a->y);
    gpu_array(call, a->dy);
    gpu_long(call, a->gradient_step);
}

tr_status gpu_attention_backward(tr_device *device, const struct tr_op_attention_backward *a)
{
    int64_t groups;
    struct gpu_call call;
    begin(&call, device, "attention_backward_queries", &a->at, a->at.heads, &groups);
    backward_arguments(&call, a);
    gpu_array(&call, a->dq);
    TR_TRY(run(&call, device, groups));
    begin(&call, device, "attention_backward_keys", &a->at, a->at.kv_heads, &groups);
    backward_arguments(&call, a);
    gpu_array(&call, a->dk);
    gpu_array(&call, a->dv);
    return run(&call, device, groups);
}

/* ---- rotary positions ---- */

tr_status gpu_rotary(tr_device *device, const struct tr_op_rotary *a)
{
    enum { THREADS_OF_A_UNIT = 1024 };
    const size_t constants = sizeof tr_cosine / sizeof(double);
    int64_t half = a->size / 2;
    double *table = tr_alloc(constants + 1 + (size_t)half, sizeof *table);
    const void *there;
    if (!table) return TR_ENOMEM;
    memcpy(table, &tr_cosine, sizeof tr_cosine);
    table[constants] = 0x1.921fb54442d18p0;
    for (int64_t k = 0; k < half; k++) table[constants + 1 + (size_t)k] = tr_rotary_turn(a, k);
    tr_status status = gpu_table(device, table, (constants + 1 + (size_t)half) * sizeof *table, &there);
    tr_free(table);
    TR_TRY(status);
    int shift = gpu_shift(device, half);
    struct gpu_call call;
    gpu_begin(&call, device, "rotary", "", "rotary");
    gpu_size(&call, a->examples);
    gpu_size(&call, a->heads);
    gpu_size(&call, half);
    gpu_int(&call, shift);
    gpu_long(&call, a->step);
    gpu_long(&call, a->past);
    gpu_int(&call, a->pairs);
    gpu_int(&call, a->inverse);
    gpu_array(&call, a->offset);
    gpu_array(&call, (const double *)there);
    gpu_array(&call, a->x);
    /* Lines loop over tokens, whose number only the device knows. */
    int64_t lines = gpu_groups((int64_t)gpu_info_of(device)->units * THREADS_OF_A_UNIT, half);
    return gpu_run_lines(&call, shift, a->examples > 0 ? lines : 0, half);
}
