/* Losses: value, hits and gradient of each row in one pass. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"
#include "device/cpu/vectors/math.h"

#include "base/numbers/mathf.h"

#include <string.h>

#define NANOSECONDS_PER_ROW     60.0
#define NANOSECONDS_PER_ELEMENT (16.0 / VW)

static double cost(int64_t rows, int64_t width)
{
    return (double)rows * (NANOSECONDS_PER_ROW + (double)width * NANOSECONDS_PER_ELEMENT);
}

/* Whether the maximum of a row is at `label`: the value there is greater than all before it, and none
   after it is greater. */
static bool found_at(const float *x, float greatest, int64_t label)
{
    if (greatest != greatest) {
        if (x[label] == x[label]) return false;
        for (int64_t k = 0; k < label; k++)
            if (x[k] != x[k]) return false;
        return true;
    }
    if (x[label] != greatest) return false;
    for (int64_t k = 0; k < label; k++)
        if (x[k] == greatest) return false;
    return true;
}

/* One row of softmax_cross_entropy; dx [classes] or NULL. */
static void cross_entropy_row(const struct tr_op_softmax_cross_entropy *a, int64_t r, float off, float on,
                              float *dx)
{
    const float *x = a->x + r * a->classes;
    int64_t classes = a->classes, label = a->label[r];
    if (label < 0) {
        a->loss[r] = a->correct[r] = 0;
        if (dx) memset(dx, 0, (size_t)classes * sizeof *dx);
        return;
    }
    float greatest = lanes_maximum(x, classes);
    struct lanes shift = lanes_set1(greatest), sums = lanes_set1(0);
    for (int64_t k = 0; k < classes; k += LANES) {
        struct lanes e = lanes_sub(lanes_load(x + k, classes - k), shift);
        LANES_EACH(v) e.part[v] = v_exp(e.part[v]);
        if (dx) lanes_store(dx + k, e, classes - k);
        sums = lanes_add(sums, lanes_keep(e, classes - k));
    }
    float sum = lanes_total(sums), logz = tr_logf(sum), loss = 0;
    if (a->smoothing != 0) {
        for (int64_t k = 0; k < classes; k++)
            loss = fmaf(k == label ? on : off, logz - (x[k] - greatest), loss);
    } else {
        loss = logz - (x[label] - greatest);
    }
    a->loss[r] = loss;
    a->correct[r] = found_at(x, greatest, label);
    if (!dx) return;
    float at_label = tr_flushf(dx[label] / sum - on) * a->scale;
    struct lanes total = lanes_set1(sum), target = lanes_set1(off), scale = lanes_set1(a->scale);
    for (int64_t k = 0; k < classes; k += LANES) {
        struct lanes slope = lanes_sub(lanes_div(lanes_load(dx + k, classes - k), total), target);
        LANES_EACH(v) slope.part[v] = v_flush(slope.part[v]);
        lanes_store(dx + k, lanes_mul(slope, scale), classes - k);
    }
    dx[label] = at_label;
}

static void cross_entropy_part(void *arguments, int member, int size)
{
    const struct tr_op_softmax_cross_entropy *a = arguments;
    float off = a->smoothing / (float)a->classes, on = (1 - a->smoothing) + off;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        cross_entropy_row(a, r, off, on, a->dx ? a->dx + r * a->classes : NULL);
}

tr_status CPU_KERNEL(softmax_cross_entropy)(tr_device *device, const struct tr_op_softmax_cross_entropy *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->classes), cross_entropy_part, (void *)a);
    return TR_OK;
}

/* The place of a row's maximum. */
static int64_t place_of(const float *x, int64_t width, float greatest)
{
    int64_t k = 0;
    while (k < width - 1 && !(x[k] == greatest || (x[k] != x[k] && greatest != greatest))) k++;
    return k;
}

/* The part of the targets from `k` on, smoothed. */
static struct lanes soft_target(const struct tr_op_soft_cross_entropy *a, const float *target, int64_t count)
{
    struct lanes given = lanes_load(target, count);
    if (a->smoothing == 0) return given;
    return lanes_fma(lanes_set1(1 - a->smoothing), given, lanes_set1(a->smoothing / (float)a->classes));
}

static void soft_row(const struct tr_op_soft_cross_entropy *a, int64_t r, float *dx)
{
    const int64_t classes = a->classes;
    const float *x = a->x + r * classes, *target = a->target + r * classes;
    const float greatest = lanes_maximum(x, classes);
    const struct lanes shift = lanes_set1(greatest), zero = lanes_set1(0);
    struct lanes exps = zero, shares = zero, terms = zero;
    for (int64_t k = 0; k < classes; k += LANES) {
        struct lanes e = lanes_sub(lanes_load(x + k, classes - k), shift);
        LANES_EACH(v) e.part[v] = v_exp(e.part[v]);
        if (dx) lanes_store(dx + k, e, classes - k);
        exps = lanes_add(exps, lanes_keep(e, classes - k));
    }
    const float sum = lanes_total(exps), logz = tr_logf(sum);
    for (int64_t k = 0; k < classes; k += LANES) {
        const int64_t count = classes - k;
        const struct lanes p = lanes_keep(soft_target(a, target + k, count), count);
        const struct lanes off = lanes_sub(lanes_load(x + k, count), shift);
        shares = lanes_add(shares, p);
        terms = lanes_fma(p, lanes_keep(lanes_sub(lanes_set1(logz), off), count), terms);
    }
    a->loss[r] = lanes_total(terms);
    a->correct[r] =
        place_of(x, classes, greatest) == place_of(target, classes, lanes_maximum(target, classes));
    if (!dx) return;
    const struct lanes all = lanes_set1(lanes_total(shares)), total = lanes_set1(sum);
    for (int64_t k = 0; k < classes; k += LANES) {
        const int64_t count = classes - k;
        const struct lanes share = lanes_div(lanes_load(dx + k, count), total);
        struct lanes slope =
            lanes_fma(share, all, lanes_mul(lanes_set1(-1), soft_target(a, target + k, count)));
        LANES_EACH(v) slope.part[v] = v_flush(slope.part[v]);
        lanes_store(dx + k, lanes_mul(slope, lanes_set1(a->scale)), count);
    }
}

static void soft_part(void *arguments, int member, int size)
{
    const struct tr_op_soft_cross_entropy *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++) soft_row(a, r, a->dx ? a->dx + r * a->classes : NULL);
}

tr_status CPU_KERNEL(soft_cross_entropy)(tr_device *device, const struct tr_op_soft_cross_entropy *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->classes), soft_part, (void *)a);
    return TR_OK;
}

static void squared_error_part(void *arguments, int member, int size)
{
    const struct tr_op_mean_squared_error *a = arguments;
    int64_t begin, end, width = a->width;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    struct lanes slope = lanes_set1(2 / (float)width), scale = lanes_set1(a->scale);
    for (int64_t r = begin; r < end; r++) {
        struct lanes sums = lanes_set1(0);
        for (int64_t k = 0; k < width; k += LANES) {
            int64_t at = r * width + k;
            struct lanes d =
                lanes_sub(lanes_load(a->x + at, width - k), lanes_load(a->target + at, width - k));
            sums = lanes_fma(d, d, sums);
            if (a->dx) lanes_store(a->dx + at, lanes_mul(lanes_mul(d, slope), scale), width - k);
        }
        a->loss[r] = lanes_total(sums) * (1 / (float)width);
    }
}

tr_status CPU_KERNEL(mean_squared_error)(tr_device *device, const struct tr_op_mean_squared_error *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->width), squared_error_part, (void *)a);
    return TR_OK;
}
