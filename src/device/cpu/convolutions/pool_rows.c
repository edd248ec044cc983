/* Pools over the rows of an example: the mean or the maximum of each column. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"

#define NANOSECONDS_PER_ELEMENT (1.0 / VW)

/* The rows of an example. */
struct span {
    int64_t begin, end;
};

static struct span span_of(const int32_t *offset, int64_t spatial, int64_t example)
{
    return offset ? (struct span){offset[example], offset[example + 1]}
                  : (struct span){example * spatial, (example + 1) * spatial};
}

static int64_t rows_of(const int32_t *offset, int64_t spatial, int64_t examples)
{
    return offset ? offset[examples] : examples * spatial;
}

/* n <= VW columns of an example from column k on. */
static void pool_columns(const struct tr_op_pool_rows_forward *a, int64_t example, struct span span,
                         int64_t k, int64_t n)
{
    const int64_t at = example * a->width + k;
    vf sum = v_zero(), kept = v_zero();
    vi where = vi_set1(0);
    for (int64_t r = span.begin; r < span.end; r++) {
        const float *p = a->x + r * a->width + k;
        const vf x = n == VW ? v_load(p) : v_load_part(p, n);
        sum = v_add(sum, x);
        if (a->kind == TR_POOL_AVERAGE) continue;
        const vm replaces = v_replaces(x, kept);
        kept = r == span.begin ? x : v_select(replaces, x, kept);
        if (r > span.begin) where = vi_select(replaces, vi_set1((int32_t)(r - span.begin)), where);
    }
    if (a->kind == TR_POOL_AVERAGE && span.begin < span.end)
        kept = v_mul(sum, v_set1(1 / (float)(span.end - span.begin)));
    v_store_part(a->y + at, kept, n);
    if (a->taken) v_store_part((float *)(void *)(a->taken + at), v_from_bits(where), n);
}

static void forward_part(void *arguments, int member, int size)
{
    const struct tr_op_pool_rows_forward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        const struct span span = span_of(a->offset, a->spatial, e);
        for (int64_t k = 0; k < a->width; k += VW)
            pool_columns(a, e, span, k, a->width - k < VW ? a->width - k : VW);
    }
}

tr_status CPU_KERNEL(pool_rows_forward)(tr_device *device, const struct tr_op_pool_rows_forward *a)
{
    const double elements = (double)rows_of(a->offset, a->spatial, a->examples) * (double)a->width;
    cpu_run(cpu_device_of(device), elements * NANOSECONDS_PER_ELEMENT, forward_part, (void *)a);
    return TR_OK;
}

static void hand_back(const struct tr_op_pool_rows_backward *a, int64_t example, struct span span, int64_t k,
                      int64_t n)
{
    const int64_t at = example * a->width + k;
    const vf dy = v_load_part(a->dy + at, n);
    const vf mean = v_mul(dy, v_set1(1 / (float)(span.end - span.begin)));
    vi taken = vi_set1(0);
    if (a->kind == TR_POOL_MAX) taken = v_bits(v_load_part((const float *)(const void *)(a->taken + at), n));
    for (int64_t r = span.begin; r < span.end; r++) {
        vf dx = mean;
        if (a->kind == TR_POOL_MAX)
            dx = v_select(vi_eq(taken, vi_set1((int32_t)(r - span.begin))), dy, v_zero());
        v_store_part(a->dx + r * a->width + k, dx, n);
    }
}

static void backward_part(void *arguments, int member, int size)
{
    const struct tr_op_pool_rows_backward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        const struct span span = span_of(a->offset, a->spatial, e);
        for (int64_t k = 0; k < a->width; k += VW)
            hand_back(a, e, span, k, a->width - k < VW ? a->width - k : VW);
    }
}

tr_status CPU_KERNEL(pool_rows_backward)(tr_device *device, const struct tr_op_pool_rows_backward *a)
{
    const double elements = (double)rows_of(a->offset, a->spatial, a->examples) * (double)a->width;
    cpu_run(cpu_device_of(device), elements * NANOSECONDS_PER_ELEMENT, backward_part, (void *)a);
    return TR_OK;
}
