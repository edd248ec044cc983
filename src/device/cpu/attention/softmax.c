/* Softmax and its gradient, row by row. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"
#include "device/cpu/vectors/math.h"

#define NANOSECONDS_PER_ROW     40.0
#define NANOSECONDS_PER_ELEMENT (12.0 / VW)

static double cost(int64_t rows, int64_t width)
{
    return (double)rows * (NANOSECONDS_PER_ROW + (double)width * NANOSECONDS_PER_ELEMENT);
}

/* y may be x. */
static void softmax_row(int64_t width, const float *x, float *y)
{
    struct lanes greatest = lanes_set1(lanes_maximum(x, width)), sum = lanes_set1(0);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes e = lanes_sub(lanes_load(x + k, width - k), greatest);
        LANES_EACH(v) e.part[v] = v_exp(e.part[v]);
        lanes_store(y + k, e, width - k);
        sum = lanes_add(sum, lanes_keep(e, width - k));
    }
    struct lanes total = lanes_set1(lanes_total(sum));
    for (int64_t k = 0; k < width; k += LANES)
        lanes_store(y + k, lanes_div(lanes_load(y + k, width - k), total), width - k);
}

static void softmax_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_softmax_forward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++) softmax_row(a->width, a->x + r * a->width, a->y + r * a->width);
}

tr_status CPU_KERNEL(softmax_forward)(tr_device *device, const struct tr_op_softmax_forward *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->width), softmax_forward_part, (void *)a);
    return TR_OK;
}

/* dx may be dy. */
static void softmax_backward_row(int64_t width, const float *y, const float *dy, float *dx)
{
    struct lanes sum = lanes_set1(0);
    for (int64_t k = 0; k < width; k += LANES)
        sum = lanes_fma(lanes_load(y + k, width - k), lanes_load(dy + k, width - k), sum);
    struct lanes total = lanes_set1(lanes_total(sum));
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes rest = lanes_sub(lanes_load(dy + k, width - k), total);
        lanes_store(dx + k, lanes_mul(lanes_load(y + k, width - k), rest), width - k);
    }
}

static void softmax_backward_part(void *arguments, int member, int size)
{
    const struct tr_op_softmax_backward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        softmax_backward_row(a->width, a->y + r * a->width, a->dy + r * a->width, a->dx + r * a->width);
}

tr_status CPU_KERNEL(softmax_backward)(tr_device *device, const struct tr_op_softmax_backward *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->width), softmax_backward_part, (void *)a);
    return TR_OK;
}
