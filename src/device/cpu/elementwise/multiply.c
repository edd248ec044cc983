/* Products of numbers, the second factor broadcast over the pixels of an image; and the sums over pixels
 * that are its gradient. A sum is a chain over the pixels; several vectors of channels are computed at
 * once.
 */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

#define NANOSECONDS 0.1 /* time of a product on a single thread, which waits for memory */
#define GRAIN       1024
#define UNDER_WAY   4 /* vectors of channels whose sums are formed at once */

V_INLINE void products(int64_t count, const float *a, const float *b, float *y)
{
    int64_t i = 0;
    for (; i + VW <= count; i += VW) v_store(y + i, v_mul(v_load(a + i), v_load(b + i)));
    if (i < count)
        v_store_part(y + i, v_mul(v_load_part(a + i, count - i), v_load_part(b + i, count - i)), count - i);
}

static void multiply_part(void *arguments, int member, int size)
{
    const struct tr_op_multiply *a = arguments;
    int64_t begin, end;
    if (a->spatial == 1) {
        tr_team_chunk(a->rows * a->width, GRAIN, member, size, &begin, &end);
        products(end - begin, a->a + begin, a->b + begin, a->y + begin);
        return;
    }
    tr_team_chunk(a->rows * a->spatial, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        products(a->width, a->a + i * a->width, a->b + i / a->spatial * a->width, a->y + i * a->width);
}

tr_status CPU_KERNEL(multiply)(tr_device *device, const struct tr_op_multiply *a)
{
    cpu_run(cpu_device_of(device), (double)(a->rows * a->spatial * a->width) * NANOSECONDS, multiply_part,
            (void *)a);
    return TR_OK;
}

/* The sums of `vectors` vectors of channels of one row. */
V_INLINE void sums(int vectors, const struct tr_op_multiply_sum *a, int64_t first, float *y)
{
    vf sum[UNDER_WAY];
    V_UNROLL for (int v = 0; v < vectors; v++) sum[v] = v_zero();
    for (int64_t p = 0; p < a->spatial; p++) V_UNROLL for (int v = 0; v < vectors; v++)
        {
            const int64_t i = first + p * a->width + v * VW;
            sum[v] = v_fma(v_load(a->a + i), v_load(a->b + i), sum[v]);
        }
    V_UNROLL for (int v = 0; v < vectors; v++) v_store(y + v * VW, sum[v]);
}

static void sums_of_row(const struct tr_op_multiply_sum *a, int64_t row)
{
    const int64_t first = row * a->spatial * a->width;
    float *y = a->y + row * a->width;
    int64_t k = 0;
    for (; k + UNDER_WAY * VW <= a->width; k += UNDER_WAY * VW) sums(UNDER_WAY, a, first + k, y + k);
    for (; k + VW <= a->width; k += VW) sums(1, a, first + k, y + k);
    if (k == a->width) return;
    const int64_t n = a->width - k;
    vf sum = v_zero();
    for (int64_t i = first + k; i < first + a->spatial * a->width; i += a->width)
        sum = v_fma(v_load_part(a->a + i, n), v_load_part(a->b + i, n), sum);
    v_store_part(y + k, sum, n);
}

static void multiply_sum_part(void *arguments, int member, int size)
{
    const struct tr_op_multiply_sum *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++) sums_of_row(a, r);
}

tr_status CPU_KERNEL(multiply_sum)(tr_device *device, const struct tr_op_multiply_sum *a)
{
    cpu_run(cpu_device_of(device), (double)(a->rows * a->spatial * a->width) * NANOSECONDS, multiply_sum_part,
            (void *)a);
    return TR_OK;
}
