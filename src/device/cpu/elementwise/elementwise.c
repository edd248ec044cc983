/* Activations, sums and scalings, element by element, at the speed of memory. */
#include "device/cpu/cpu.h"
#include "device/cpu/products/gelu.h"
#include "device/cpu/kernels.h"

/* Least elements for a member; a multiple of every vector width and of a cache line. */
#define GRAIN 1024

/* Nanoseconds that one element takes on a single thread: operations that only move memory, and
 * transcendental ones.
 */
#define NANOSECONDS_MOVED    0.1
#define NANOSECONDS_COMPUTED 1.0

typedef vf (*map_function)(vf x, vf parameter);
typedef vf (*map2_function)(vf x, vf y, vf parameter);

/* to[i] = f(x[i], parameter) for i in [begin, end). */
V_INLINE void map(int64_t begin, int64_t end, const float *x, float *to, map_function f, vf parameter)
{
    int64_t i = begin;
    for (; i + VW <= end; i += VW) v_store(to + i, f(v_load(x + i), parameter));
    if (i < end) v_store_part(to + i, f(v_load_part(x + i, end - i), parameter), end - i);
}

/* to[i] = f(x[i], y[i], parameter). */
V_INLINE void map2(int64_t begin, int64_t end, const float *x, const float *y, float *to, map2_function f,
                   vf parameter)
{
    int64_t i = begin;
    for (; i + VW <= end; i += VW) v_store(to + i, f(v_load(x + i), v_load(y + i), parameter));
    if (i < end) {
        int64_t n = end - i;
        v_store_part(to + i, f(v_load_part(x + i, n), v_load_part(y + i, n), parameter), n);
    }
}

static double cost(int64_t count, enum tr_activation activation)
{
    bool moved = activation == TR_ACT_NONE || activation == TR_ACT_RELU || activation == TR_ACT_LEAKY_RELU;
    return (double)count * (moved ? NANOSECONDS_MOVED : NANOSECONDS_COMPUTED);
}

/* ---- activations ---- */

V_INLINE vf forward_none(vf x, vf slope)
{
    (void)slope;
    return x;
}

V_INLINE vf forward_relu(vf x, vf slope)
{
    (void)slope;
    return v_select(v_gt(v_zero(), x), v_zero(), x);
}

V_INLINE vf forward_leaky_relu(vf x, vf slope)
{
    return v_select(v_gt(v_zero(), x), v_mul(slope, x), x);
}

V_INLINE vf forward_tanh(vf x, vf slope)
{
    (void)slope;
    return v_tanh(x);
}

V_INLINE vf forward_sigmoid(vf x, vf slope)
{
    (void)slope;
    return v_sigmoid(x);
}

V_INLINE vf forward_gelu(vf x, vf slope)
{
    (void)slope;
    return gelu(TR_ACT_GELU, x);
}

V_INLINE vf forward_gelu_tanh(vf x, vf slope)
{
    (void)slope;
    return gelu(TR_ACT_GELU_TANH, x);
}

V_INLINE vf forward_silu(vf x, vf slope)
{
    (void)slope;
    return v_mul(x, v_sigmoid(x));
}

V_INLINE vf forward_hard_swish(vf x, vf slope)
{
    (void)slope;
    const vf six = v_set1(6.0f), t = v_add(x, v_set1(3.0f));
    const vf between = v_select(v_gt(v_zero(), t), v_zero(), v_select(v_gt(t, six), six, t));
    return v_mul(x, v_mul(between, v_set1(0x1.555556p-3f)));
}

V_INLINE vf forward_relu6(vf x, vf slope)
{
    (void)slope;
    const vf six = v_set1(6.0f);
    return v_select(v_gt(v_zero(), x), v_zero(), v_select(v_gt(x, six), six, x));
}

static void activation_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_activation_forward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->count, GRAIN, member, size, &begin, &end);
    vf slope = v_set1(a->slope);
    switch (a->activation) {
    case TR_ACT_NONE:
        map(begin, end, a->x, a->y, forward_none, slope);
        break;
    case TR_ACT_RELU:
        map(begin, end, a->x, a->y, forward_relu, slope);
        break;
    case TR_ACT_LEAKY_RELU:
        map(begin, end, a->x, a->y, forward_leaky_relu, slope);
        break;
    case TR_ACT_TANH:
        map(begin, end, a->x, a->y, forward_tanh, slope);
        break;
    case TR_ACT_SIGMOID:
        map(begin, end, a->x, a->y, forward_sigmoid, slope);
        break;
    case TR_ACT_GELU:
        map(begin, end, a->x, a->y, forward_gelu, slope);
        break;
    case TR_ACT_GELU_TANH:
        map(begin, end, a->x, a->y, forward_gelu_tanh, slope);
        break;
    case TR_ACT_SILU:
        map(begin, end, a->x, a->y, forward_silu, slope);
        break;
    case TR_ACT_HARD_SWISH:
        map(begin, end, a->x, a->y, forward_hard_swish, slope);
        break;
    case TR_ACT_RELU6:
        map(begin, end, a->x, a->y, forward_relu6, slope);
        break;
    }
}

tr_status CPU_KERNEL(activation_forward)(tr_device *device, const struct tr_op_activation_forward *a)
{
    cpu_run(cpu_device_of(device), cost(a->count, a->activation), activation_forward_part, (void *)a);
    return TR_OK;
}

V_INLINE vf backward_relu(vf y, vf dy, vf slope)
{
    (void)slope;
    return v_select(v_gt(y, v_zero()), dy, v_zero());
}

V_INLINE vf backward_leaky_relu(vf y, vf dy, vf slope)
{
    return v_select(v_gt(y, v_zero()), dy, v_mul(slope, dy));
}

V_INLINE vf backward_tanh(vf y, vf dy, vf slope)
{
    (void)slope;
    return v_mul(dy, v_fnma(y, y, v_set1(1.0f)));
}

V_INLINE vf backward_sigmoid(vf y, vf dy, vf slope)
{
    (void)slope;
    return v_mul(dy, v_mul(y, v_sub(v_set1(1.0f), y)));
}

V_INLINE vf backward_gelu(vf x, vf dy, vf slope)
{
    (void)slope;
    vf y, derivative;
    gelu_both(TR_ACT_GELU, x, &y, &derivative);
    return v_mul(dy, derivative);
}

V_INLINE vf backward_gelu_tanh(vf x, vf dy, vf slope)
{
    (void)slope;
    vf y, derivative;
    gelu_both(TR_ACT_GELU_TANH, x, &y, &derivative);
    return v_mul(dy, derivative);
}

V_INLINE vf backward_silu(vf x, vf dy, vf slope)
{
    (void)slope;
    const vf one = v_set1(1.0f), s = v_sigmoid(x);
    return v_mul(dy, v_mul(s, v_fma(x, v_sub(one, s), one)));
}

V_INLINE vf backward_hard_swish(vf x, vf dy, vf slope)
{
    (void)slope;
    const vf inside = v_mul(dy, v_fma(x, v_set1(0x1.555556p-2f), v_set1(0.5f)));
    return v_select(v_ge(v_set1(-3.0f), x), v_zero(), v_select(v_ge(x, v_set1(3.0f)), dy, inside));
}

V_INLINE vf backward_relu6(vf x, vf dy, vf slope)
{
    (void)slope;
    return v_select(v_ge(v_zero(), x), v_zero(), v_select(v_ge(x, v_set1(6.0f)), v_zero(), dy));
}

static void activation_backward_part(void *arguments, int member, int size)
{
    const struct tr_op_activation_backward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->count, GRAIN, member, size, &begin, &end);
    vf slope = v_set1(a->slope);
    switch (a->activation) {
    case TR_ACT_NONE:
        map(begin, end, a->dy, a->dx, forward_none, slope);
        break;
    case TR_ACT_RELU:
        map2(begin, end, a->y, a->dy, a->dx, backward_relu, slope);
        break;
    case TR_ACT_LEAKY_RELU:
        map2(begin, end, a->y, a->dy, a->dx, backward_leaky_relu, slope);
        break;
    case TR_ACT_TANH:
        map2(begin, end, a->y, a->dy, a->dx, backward_tanh, slope);
        break;
    case TR_ACT_SIGMOID:
        map2(begin, end, a->y, a->dy, a->dx, backward_sigmoid, slope);
        break;
    case TR_ACT_GELU:
        map2(begin, end, a->x, a->dy, a->dx, backward_gelu, slope);
        break;
    case TR_ACT_GELU_TANH:
        map2(begin, end, a->x, a->dy, a->dx, backward_gelu_tanh, slope);
        break;
    case TR_ACT_SILU:
        map2(begin, end, a->x, a->dy, a->dx, backward_silu, slope);
        break;
    case TR_ACT_HARD_SWISH:
        map2(begin, end, a->x, a->dy, a->dx, backward_hard_swish, slope);
        break;
    case TR_ACT_RELU6:
        map2(begin, end, a->x, a->dy, a->dx, backward_relu6, slope);
        break;
    }
}

tr_status CPU_KERNEL(activation_backward)(tr_device *device, const struct tr_op_activation_backward *a)
{
    if (a->activation == TR_ACT_NONE && a->dx == a->dy) return TR_OK;
    cpu_run(cpu_device_of(device), cost(a->count, a->activation), activation_backward_part, (void *)a);
    return TR_OK;
}

/* ---- sums and scalings ---- */

V_INLINE vf sum_of(vf a, vf b, vf parameter)
{
    (void)parameter;
    return v_add(a, b);
}

static void add_part(void *arguments, int member, int size)
{
    const struct tr_op_add *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->count, GRAIN, member, size, &begin, &end);
    map2(begin, end, a->a, a->b, a->y, sum_of, v_zero());
}

tr_status CPU_KERNEL(add)(tr_device *device, const struct tr_op_add *a)
{
    cpu_run(cpu_device_of(device), cost(a->count, TR_ACT_NONE), add_part, (void *)a);
    return TR_OK;
}

V_INLINE vf scaled(vf x, vf factor)
{
    return v_mul(factor, x);
}

static void scale_part(void *arguments, int member, int size)
{
    const struct tr_op_scale *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->count, GRAIN, member, size, &begin, &end);
    map(begin, end, a->x, a->y, scaled, v_set1(a->factor));
}

tr_status CPU_KERNEL(scale)(tr_device *device, const struct tr_op_scale *a)
{
    cpu_run(cpu_device_of(device), cost(a->count, TR_ACT_NONE), scale_part, (void *)a);
    return TR_OK;
}

static void fill_part(void *arguments, int member, int size)
{
    const struct tr_op_fill *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->count, GRAIN, member, size, &begin, &end);
    vf value = v_set1(a->value);
    int64_t i = begin;
    for (; i + VW <= end; i += VW) v_store(a->y + i, value);
    if (i < end) v_store_part(a->y + i, value, end - i);
}

tr_status CPU_KERNEL(fill)(tr_device *device, const struct tr_op_fill *a)
{
    cpu_run(cpu_device_of(device), cost(a->count, TR_ACT_NONE), fill_part, (void *)a);
    return TR_OK;
}
