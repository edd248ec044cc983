/* Losses, row by row, and the sum of rows. */
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/tree.h"

#include <math.h>

tr_status ref_softmax_cross_entropy(tr_device *device, const struct tr_op_softmax_cross_entropy *a)
{
    (void)device;
    bool smooth = a->smoothing != 0;
    float off = a->smoothing / (float)a->classes, on = (1 - a->smoothing) + off;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes;
        if (a->label[r] < 0) {
            a->loss[r] = a->correct[r] = 0;
            for (int64_t k = 0; a->dx && k < a->classes; k++) a->dx[r * a->classes + k] = 0;
            continue;
        }
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
            a->dx[r * a->classes + k] = tr_flushf(tr_expf(x[k] - greatest) / sum - target) * a->scale;
        }
    }
    return TR_OK;
}

tr_status ref_soft_cross_entropy(tr_device *device, const struct tr_op_soft_cross_entropy *a)
{
    (void)device;
    float kept = 1 - a->smoothing, spread = a->smoothing / (float)a->classes;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes, *target = a->target + r * a->classes;
        int64_t best = ref_greatest(a->classes, x);
        float greatest = x[best], exps[REF_LANES] = {0}, shares[REF_LANES] = {0}, terms[REF_LANES] = {0};
        for (int64_t k = 0; k < a->classes; k++) exps[k % REF_LANES] += tr_expf(x[k] - greatest);
        float sum = ref_lanes_total(exps), logz = tr_logf(sum);
        for (int64_t k = 0; k < a->classes; k++) {
            float p = a->smoothing != 0 ? fmaf(kept, target[k], spread) : target[k];
            shares[k % REF_LANES] += p;
            terms[k % REF_LANES] = fmaf(p, logz - (x[k] - greatest), terms[k % REF_LANES]);
        }
        float all = ref_lanes_total(shares);
        a->loss[r] = ref_lanes_total(terms);
        a->correct[r] = best == ref_greatest(a->classes, target);
        for (int64_t k = 0; a->dx && k < a->classes; k++) {
            float p = a->smoothing != 0 ? fmaf(kept, target[k], spread) : target[k];
            a->dx[r * a->classes + k] = tr_flushf(fmaf(tr_expf(x[k] - greatest) / sum, all, -p)) * a->scale;
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

tr_status ref_binary_cross_entropy(tr_device *device, const struct tr_op_binary_cross_entropy *a)
{
    (void)device;
    float share = 1 / (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        float lane[REF_LANES] = {0};
        int64_t right = 0;
        for (int64_t k = 0; k < a->width; k++) {
            float x = a->x[r * a->width + k], t = a->target[r * a->width + k], s = tr_sigmoidf(x);
            float z = (-x > 0 ? -x : x != x ? x : 0) + tr_logf(1 + tr_expf(-fabsf(x))), slope;
            if (a->weight) {
                float q = a->weight[k] * t, u = (q + 1) - t;
                lane[k % REF_LANES] += fmaf(1 - t, x, u * z);
                slope = fmaf(u, s, -q);
            } else {
                lane[k % REF_LANES] += fmaf(1 - t, x, z);
                slope = s - t;
            }
            right += (x > 0) == (t > 0.5f);
            if (a->dx) a->dx[r * a->width + k] = (tr_flushf(slope) * share) * a->scale;
        }
        a->loss[r] = ref_lanes_total(lane) * share;
        a->correct[r] = (float)right / (float)a->width;
    }
    return TR_OK;
}

tr_status ref_huber_error(tr_device *device, const struct tr_op_huber_error *a)
{
    (void)device;
    float share = 1 / (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        float lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) {
            float d = a->x[r * a->width + k] - a->target[r * a->width + k], away = fabsf(d);
            float term = away, slope = d > 0 ? 1 : d < 0 ? -1 : d;
            if (a->delta > 0) {
                bool near = away <= a->delta;
                term = near ? (0.5f * d) * d : a->delta * (away - 0.5f * a->delta);
                slope = near ? d : a->delta * slope;
            }
            lane[k % REF_LANES] += term;
            if (a->dx) a->dx[r * a->width + k] = (slope * share) * a->scale;
        }
        a->loss[r] = ref_lanes_total(lane) * share;
    }
    return TR_OK;
}

tr_status ref_focal_cross_entropy(tr_device *device, const struct tr_op_focal_cross_entropy *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes;
        float *dx = a->dx ? a->dx + r * a->classes : NULL;
        int64_t label = a->label[r], best = ref_greatest(a->classes, x);
        if (label < 0) {
            a->loss[r] = a->correct[r] = 0;
            for (int64_t k = 0; dx && k < a->classes; k++) dx[k] = 0;
            continue;
        }
        float all[REF_LANES] = {0}, others[REF_LANES] = {0};
        for (int64_t k = 0; k < a->classes; k++) {
            float e = tr_expf(x[k] - x[best]);
            all[k % REF_LANES] += e;
            others[k % REF_LANES] += k == label ? 0 : e;
        }
        float sum = ref_lanes_total(all), q = ref_lanes_total(others) / sum;
        float n = tr_logf(sum) - (x[label] - x[best]), w = q == 0 ? 0 : tr_expf(a->gamma * tr_logf(q));
        float p = tr_expf(x[label] - x[best]) / sum;
        float factor = fmaf((a->gamma * p) * n, q == 0 ? 0 : w / q, w);
        a->loss[r] = w * n;
        a->correct[r] = best == label;
        for (int64_t k = 0; dx && k < a->classes; k++)
            dx[k] = tr_flushf(factor * (k == label ? -q : tr_expf(x[k] - x[best]) / sum)) * a->scale;
    }
    return TR_OK;
}

tr_status ref_quantile_error(tr_device *device, const struct tr_op_quantile_error *a)
{
    (void)device;
    float share = 1 / (float)a->width;
    int64_t targets = a->width / a->each;
    for (int64_t r = 0; r < a->rows; r++) {
        float lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) {
            float d = a->target[r * targets + k / a->each] - a->x[r * a->width + k], q = a->quantile[k];
            lane[k % REF_LANES] += d > 0 ? q * d : (q - 1) * d;
            if (a->dx) a->dx[r * a->width + k] = ((d > 0 ? -q : d < 0 ? 1 - q : d) * share) * a->scale;
        }
        a->loss[r] = ref_lanes_total(lane) * share;
    }
    return TR_OK;
}

tr_status ref_poisson_error(tr_device *device, const struct tr_op_poisson_error *a)
{
    (void)device;
    float share = 1 / (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        float lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) {
            float x = a->x[r * a->width + k], t = a->target[r * a->width + k];
            float y = a->logs ? tr_expf(x) : x + a->epsilon, slope = a->logs ? y - t : 1 - t / y;
            lane[k % REF_LANES] += a->logs ? fmaf(-t, x, y) : fmaf(-t, tr_logf(y), x);
            if (a->dx) a->dx[r * a->width + k] = (tr_flushf(slope) * share) * a->scale;
        }
        a->loss[r] = ref_lanes_total(lane) * share;
    }
    return TR_OK;
}

tr_status ref_contrastive_error(tr_device *device, const struct tr_op_contrastive_error *a)
{
    (void)device;
    const int64_t width = a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * 2 * width;
        float *dx = a->dx ? a->dx + r * 2 * width : NULL, squares[REF_LANES] = {0};
        const bool same = a->label[r] > 0;
        for (int64_t k = 0; k < width; k++) {
            float d = x[k] - x[width + k];
            squares[k % REF_LANES] = fmaf(d, d, squares[k % REF_LANES]);
        }
        float away = sqrtf(ref_lanes_total(squares)), gap = a->margin - away, factor = 1;
        if (same) {
            a->loss[r] = (0.5f * away) * away;
        } else {
            a->loss[r] = gap <= 0 ? 0 : (0.5f * gap) * gap;
            factor = gap <= 0 || away == 0 ? 0 : -(gap / away);
        }
        a->correct[r] = (away < 0.5f * a->margin) == same;
        for (int64_t k = 0; dx && k < width; k++) {
            float slope = (factor * (x[k] - x[width + k])) * a->scale;
            dx[k] = slope;
            dx[width + k] = -slope;
        }
    }
    return TR_OK;
}

tr_status ref_triplet_error(tr_device *device, const struct tr_op_triplet_error *a)
{
    (void)device;
    const int64_t width = a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * 3 * width, *like = x + width, *unlike = like + width;
        float *dx = a->dx ? a->dx + r * 3 * width : NULL, near[REF_LANES] = {0}, far[REF_LANES] = {0};
        for (int64_t k = 0; k < width; k++) {
            float p = x[k] - like[k], n = x[k] - unlike[k];
            near[k % REF_LANES] = fmaf(p, p, near[k % REF_LANES]);
            far[k % REF_LANES] = fmaf(n, n, far[k % REF_LANES]);
        }
        float to_like = ref_lanes_total(near), to_unlike = ref_lanes_total(far), of_like = 2, of_unlike = 2;
        if (!a->squared) {
            to_like = sqrtf(to_like);
            to_unlike = sqrtf(to_unlike);
            of_like = to_like == 0 ? 0 : 1 / to_like;
            of_unlike = to_unlike == 0 ? 0 : 1 / to_unlike;
        }
        float loss = (to_like - to_unlike) + a->margin;
        if (loss <= 0) loss = of_like = of_unlike = 0;
        a->loss[r] = loss;
        a->correct[r] = to_like < to_unlike;
        for (int64_t k = 0; dx && k < width; k++) {
            float u = of_like * (x[k] - like[k]), w = of_unlike * (x[k] - unlike[k]);
            dx[k] = (u - w) * a->scale;
            dx[width + k] = -u * a->scale;
            dx[2 * width + k] = w * a->scale;
        }
    }
    return TR_OK;
}

tr_status ref_weigh_rows(tr_device *device, const struct tr_op_weigh_rows *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++) {
        if (a->label[r] < 0) continue;
        float weight = a->weight[a->label[r]];
        a->loss[r] = a->loss[r] * weight;
        for (int64_t k = 0; a->dx && k < a->width; k++)
            a->dx[r * a->width + k] = a->dx[r * a->width + k] * weight;
    }
    return TR_OK;
}

/* One example of mean_of_labelled. */
static void mean_of_example(const struct tr_op_mean_labelled *a, int64_t e)
{
    const int64_t first = e * a->places, end = first + a->places;
    int64_t labelled = 0;
    float loss[REF_LANES] = {0}, correct[REF_LANES] = {0};
    for (int64_t p = first; p < end; p++) {
        const int32_t label = a->label[p];
        const int64_t lane = (p - first) % REF_LANES;
        float weight = a->weight && label >= 0 ? a->weight[label] : 1;
        labelled += label >= 0;
        loss[lane] += label < 0 ? 0 : a->each_loss[p] * weight;
        correct[lane] += a->each_correct[p];
    }
    const float share = labelled > 0 ? 1 / (float)labelled : 0;
    a->loss[e] = ref_lanes_total(loss) * share;
    a->correct[e] = ref_lanes_total(correct) * share;
    for (int64_t p = first; a->dx && p < end; p++) {
        if (a->label[p] < 0) continue;
        float factor = (a->weight ? a->weight[a->label[p]] : 1) * share;
        for (int64_t k = 0; k < a->classes; k++)
            a->dx[p * a->classes + k] = a->dx[p * a->classes + k] * factor;
    }
}

tr_status ref_mean_labelled(tr_device *device, const struct tr_op_mean_labelled *a)
{
    (void)device;
    for (int64_t e = 0; e < a->rows; e++) mean_of_example(a, e);
    return TR_OK;
}

tr_status ref_to_labels(tr_device *device, const struct tr_op_to_labels *a)
{
    (void)device;
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->x[i] >= 0 && a->x[i] < 0x1p31f ? (int32_t)a->x[i] : 0;
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
