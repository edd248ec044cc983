/* Sums to one number: of rows, and of squares for clipping. */
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"

#include <math.h>

/* Elements whose squares form one lane sum; part of the definition. */
#define SQUARES_BLOCK 4096

#define NANOSECONDS_PER_SQUARE 0.1

struct squares {
    const struct tr_op_sum_squares *op;
    float *sum; /* one per block */
};

/* The lane sums of `blocks` consecutive whole blocks, computed in parallel: a single chain would mostly
 * wait for the latency of its additions.
 */
#define SIDE_BY_SIDE 4

V_INLINE void whole_blocks(const float *x, const int blocks, float *to)
{
    struct lanes sum[SIDE_BY_SIDE];
    for (int b = 0; b < blocks; b++) sum[b] = lanes_set1(0);
    for (int64_t i = 0; i < SQUARES_BLOCK; i += LANES) {
        for (int b = 0; b < blocks; b++) {
            struct lanes part = lanes_load(x + b * SQUARES_BLOCK + i, LANES);
            sum[b] = lanes_fma(part, part, sum[b]);
        }
    }
    for (int b = 0; b < blocks; b++) to[b] = lanes_total(sum[b]);
}

static void sum_squares_part(void *arguments, int member, int size)
{
    const struct squares *s = arguments;
    int64_t block, end, count = s->op->count, whole = count / SQUARES_BLOCK;
    tr_team_chunk((count + SQUARES_BLOCK - 1) / SQUARES_BLOCK, 1, member, size, &block, &end);
    const float *x = s->op->x;
    for (; block + SIDE_BY_SIDE <= end && block + SIDE_BY_SIDE <= whole; block += SIDE_BY_SIDE)
        whole_blocks(x + block * SQUARES_BLOCK, SIDE_BY_SIDE, s->sum + block);
    for (; block < end && block < whole; block++) whole_blocks(x + block * SQUARES_BLOCK, 1, s->sum + block);
    if (block == end) return;
    struct lanes sum = lanes_set1(0);
    for (int64_t i = whole * SQUARES_BLOCK; i < count; i += LANES) {
        struct lanes part = lanes_load(x + i, count - i);
        sum = lanes_fma(part, part, sum);
    }
    s->sum[block] = lanes_total(sum);
}

tr_status CPU_KERNEL(sum_squares)(tr_device *device, const struct tr_op_sum_squares *a)
{
    struct cpu_device *cpu = cpu_device_of(device);
    int64_t blocks = (a->count + SQUARES_BLOCK - 1) / SQUARES_BLOCK;
    tr_status status = cpu_reserve(cpu, 0, (size_t)blocks * sizeof(float));
    if (status != TR_OK) return status;
    struct squares s = {a, cpu_shared(cpu)};
    cpu_run(cpu, (double)a->count * NANOSECONDS_PER_SQUARE, sum_squares_part, &s);
    float sum = 0;
    for (int64_t block = 0; block < blocks; block++) sum += s.sum[block];
    *a->out = sum;
    return TR_OK;
}

tr_status CPU_KERNEL(clip_scale)(tr_device *device, const struct tr_op_clip_scale *a)
{
    (void)device;
    float sum = 0;
    for (int64_t i = 0; i < a->count; i++) sum += a->squares[i];
    float norm = sqrtf(sum);
    *a->norm = norm;
    a->scalars->clip_scale = norm > a->max_norm ? a->max_norm / norm : 1;
    return TR_OK;
}

/* Not for columns of one float: the chain of a microbatch is serial in any case. */
tr_status CPU_KERNEL(sum_rows)(tr_device *device, const struct tr_op_sum_rows *a)
{
    (void)device;
    struct column_tree sums;
    column_tree_begin(&sums);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            float sum = 0;
            for (int64_t r = a->cut.row[i]; r < a->cut.row[i + 1]; r++) sum += a->x[r];
            vf leaf = v_set1(sum);
            column_tree_push(&sums, 1, &leaf);
        }
        column_tree_finish(&sums, 1);
        v_store_part(a->y + node * a->cut.stride, sums.sum[0][0], 1);
    }
    return TR_OK;
}
