/* Losses, row by row, and the sum of rows. */
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/tree.h"

#include <math.h>

tr_status ref_softmax_cross_entropy(tr_device *device, const struct tr_op_softmax_cross_entropy *a)
{
    (void)device;
    bool smooth = a->smoothing != 0;
    float off = a->smoothing / (float)a->classes, on = (1 - a->smoothing) + off;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes;
        int64_t best = ref_greatest(a->classes, x), label = a->label[r];
        float greatest = x[best], lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->classes; k++) lane[k % REF_LANES] += tr_expf(x[k] - greatest);
        float sum = ref_lanes_total(lane), logz = tr_logf(sum), loss = 0;
        if (smooth)
            for (int64_t k = 0; k < a->classes; k++)
                loss = fmaf(k == label ? on : off, logz - (x[k] - greatest), loss);
        else
            loss = logz - (x[label] - greatest);
        a->loss[r] = loss;
        a->correct[r] = best == label;
        if (!a->dx) continue;
        for (int64_t k = 0; k < a->classes; k++) {
            float target = k == label ? on : off;
            a->dx[r * a->classes + k] = (tr_expf(x[k] - greatest) / sum - target) * a->scale;
        }
    }
    return TR_OK;
}

tr_status ref_mean_squared_error(tr_device *device, const struct tr_op_mean_squared_error *a)
{
    (void)device;
    float share = 1 / (float)a->width, slope = 2 / (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        float lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) {
            float d = a->x[r * a->width + k] - a->target[r * a->width + k];
            lane[k % REF_LANES] = fmaf(d, d, lane[k % REF_LANES]);
            if (a->dx) a->dx[r * a->width + k] = (d * slope) * a->scale;
        }
        a->loss[r] = ref_lanes_total(lane) * share;
    }
    return TR_OK;
}

static void rows_leaf(const void *arguments, int32_t microbatch, float *sum)
{
    const struct tr_op_sum_rows *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++) *sum += a->x[r];
}

tr_status ref_sum_rows(tr_device *device, const struct tr_op_sum_rows *a)
{
    (void)device;
    return ref_tree(&a->cut, 1, rows_leaf, a, a->y);
}
