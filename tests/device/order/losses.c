/* Losses and sums of them. */
#include "device/order/order.h"

#include "base/numbers/mathf.h"

ORDER(softmax_cross_entropy)
{
    const float off = a->smoothing / (float)a->classes, on = (1 - a->smoothing) + off;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes;
        const int32_t label = a->label[r];
        for (int64_t k = 0; label >= 0 && k < a->classes; k++) number(x[k]);
        const int64_t best = label >= 0 ? greatest() : 0;
        for (int64_t k = 0; label >= 0 && k < a->classes; k++) number(tr_expf(x[k] - x[best]));
        const float sum = lane_sum(), logz = tr_logf(sum);
        if (label < 0)
            a->loss[r] = 0;
        else if (a->smoothing == 0)
            a->loss[r] = logz - (x[label] - x[best]);
        else {
            for (int64_t k = 0; k < a->classes; k++) term(k == label ? on : off, logz - (x[k] - x[best]));
            a->loss[r] = chain(0);
        }
        a->correct[r] = label >= 0 && best == label;
        for (int64_t k = 0; a->dx && k < a->classes; k++)
            a->dx[r * a->classes + k] =
                label < 0 ? 0 : flushed(tr_expf(x[k] - x[best]) / sum - (k == label ? on : off)) * a->scale;
    }
}

ORDER(soft_cross_entropy)
{
    const float kept = 1 - a->smoothing, spread = a->smoothing / (float)a->classes;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes, *t = a->target + r * a->classes;
        for (int64_t k = 0; k < a->classes; k++) number(x[k]);
        const int64_t best = greatest();
        for (int64_t k = 0; k < a->classes; k++) number(t[k]);
        a->correct[r] = greatest() == best;
        for (int64_t k = 0; k < a->classes; k++) number(tr_expf(x[k] - x[best]));
        const float sum = lane_sum(), logz = tr_logf(sum);
        for (int64_t k = 0; k < a->classes; k++)
            term(a->smoothing == 0 ? t[k] : fused(kept, t[k], spread), logz - (x[k] - x[best]));
        a->loss[r] = lane_chain();
        for (int64_t k = 0; k < a->classes; k++) number(a->smoothing == 0 ? t[k] : fused(kept, t[k], spread));
        const float all = lane_sum();
        for (int64_t k = 0; a->dx && k < a->classes; k++) {
            const float p = a->smoothing == 0 ? t[k] : fused(kept, t[k], spread);
            a->dx[r * a->classes + k] = flushed(fused(tr_expf(x[k] - x[best]) / sum, all, -p)) * a->scale;
        }
    }
}

ORDER(mean_squared_error)
{
    const float width = (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t i = r * a->width; i < (r + 1) * a->width; i++) {
            const float d = a->x[i] - a->target[i];
            term(d, d);
            if (a->dx) a->dx[i] = (d * (2 / width)) * a->scale;
        }
        a->loss[r] = lane_chain() * (1 / width);
    }
}

static float positive(float x)
{
    return x > 0 || isnan(x) ? x : 0;
}

ORDER(binary_cross_entropy)
{
    const float width = (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        int64_t right = 0;
        for (int64_t i = r * a->width; i < (r + 1) * a->width; i++) {
            const float x = a->x[i], t = a->target[i], s = tr_sigmoidf(x);
            const float z = positive(-x) + tr_logf(1 + tr_expf(-fabsf(x)));
            const float q = a->weight ? a->weight[i - r * a->width] * t : 0, u = (q + 1) - t;
            number(fused(1 - t, x, a->weight ? u * z : z));
            right += (x > 0) == (t > 0.5f);
            if (a->dx) a->dx[i] = (flushed(a->weight ? fused(u, s, -q) : s - t) * (1 / width)) * a->scale;
        }
        a->loss[r] = lane_sum() * (1 / width);
        a->correct[r] = (float)right / width;
    }
}

ORDER(huber_error)
{
    const float width = (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t i = r * a->width; i < (r + 1) * a->width; i++) {
            const float d = a->x[i] - a->target[i], sign = d > 0 ? 1 : d < 0 ? -1 : d;
            const bool near = fabsf(d) <= a->delta;
            if (a->delta == 0)
                number(fabsf(d));
            else
                number(near ? (0.5f * d) * d : a->delta * (fabsf(d) - 0.5f * a->delta));
            const float slope = a->delta == 0 ? sign : near ? d : a->delta * sign;
            if (a->dx) a->dx[i] = (slope * (1 / width)) * a->scale;
        }
        a->loss[r] = lane_sum() * (1 / width);
    }
}

ORDER(focal_cross_entropy)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->classes;
        const int32_t label = a->label[r];
        float most = 0, sum = 1, q = 0, n = 0, w = 0, f = 0;
        a->correct[r] = 0;
        if (label >= 0) {
            for (int64_t k = 0; k < a->classes; k++) number(x[k]);
            const int64_t best = greatest();
            most = x[best];
            a->correct[r] = best == label;
            for (int64_t k = 0; k < a->classes; k++) number(tr_expf(x[k] - most));
            sum = lane_sum();
            for (int64_t k = 0; k < a->classes; k++) number(k == label ? 0 : tr_expf(x[k] - most));
            q = lane_sum() / sum;
            n = tr_logf(sum) - (x[label] - most);
            w = q == 0 ? 0 : tr_expf(a->gamma * tr_logf(q));
            f = fused((a->gamma * (tr_expf(x[label] - most) / sum)) * n, q == 0 ? 0 : w / q, w);
        }
        a->loss[r] = w * n;
        for (int64_t k = 0; a->dx && k < a->classes; k++)
            a->dx[r * a->classes + k] = label < 0    ? 0
                                        : k == label ? flushed(f * -q) * a->scale
                                                     : flushed(f * (tr_expf(x[k] - most) / sum)) * a->scale;
    }
}

ORDER(quantile_error)
{
    const float share = 1 / (float)a->width;
    const float *target = a->target;
    for (int64_t i = 0; i < a->rows * a->width; i += a->width) {
        for (int64_t k = 0; k < a->width; k++) {
            const float d = *target - a->x[i + k], q = a->quantile[k];
            number((d > 0 ? q : q - 1) * d);
            if (a->dx) a->dx[i + k] = ((d == 0 || isnan(d) ? d : d > 0 ? -q : 1 - q) * share) * a->scale;
            if (k % a->each == a->each - 1) target++;
        }
        a->loss[i / a->width] = lane_sum() * share;
    }
}

ORDER(poisson_error)
{
    const float share = 1 / (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t i = r * a->width; i < (r + 1) * a->width; i++) {
            const float x = a->x[i], t = a->target[i], y = a->logs ? tr_expf(x) : x + a->epsilon;
            number(fused(-t, a->logs ? x : tr_logf(y), a->logs ? y : x));
            if (a->dx) a->dx[i] = (flushed(a->logs ? y - t : 1 - t / y) * share) * a->scale;
        }
        a->loss[r] = lane_sum() * share;
    }
}

/* The sum of squares of what part `b` of a row is away from part `a`. */
static float squares_between(const float *x, int64_t width, int a, int b)
{
    for (int64_t k = 0; k < width; k++) {
        const float d = x[a * width + k] - x[b * width + k];
        term(d, d);
    }
    return lane_chain();
}

ORDER(contrastive_error)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + 2 * r * a->width;
        const float away = sqrtf(squares_between(x, a->width, 0, 1)), lacks = a->margin - away;
        const bool same = a->label[r] > 0, far = away < a->margin * 0.5f ? false : true;
        const float half = 0.5f * (same ? away : lacks), whole = same ? away : lacks;
        a->loss[r] = !same && lacks <= 0 ? 0 : half * whole;
        a->correct[r] = same != far;
        for (int64_t k = 0; a->dx && k < a->width; k++) {
            float pull = same ? 1 : lacks <= 0 || away == 0 ? 0 : -(lacks / away);
            pull = (pull * (x[k] - x[a->width + k])) * a->scale;
            a->dx[2 * r * a->width + k] = pull;
            a->dx[(2 * r + 1) * a->width + k] = -pull;
        }
    }
}

ORDER(triplet_error)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + 3 * r * a->width;
        float away[2], factor[2];
        for (int i = 0; i < 2; i++) {
            away[i] = squares_between(x, a->width, 0, 1 + i);
            if (!a->squared) away[i] = sqrtf(away[i]);
            factor[i] = a->squared ? 2 : away[i] == 0 ? 0 : 1 / away[i];
        }
        const float value = (away[0] - away[1]) + a->margin;
        const bool idle = value <= 0;
        a->loss[r] = idle ? 0 : value;
        a->correct[r] = away[0] < away[1];
        for (int64_t k = 0; a->dx && k < a->width; k++) {
            const float u = (idle ? 0 : factor[0]) * (x[k] - x[a->width + k]);
            const float w = (idle ? 0 : factor[1]) * (x[k] - x[2 * a->width + k]);
            a->dx[3 * r * a->width + k] = (u - w) * a->scale;
            a->dx[(3 * r + 1) * a->width + k] = -u * a->scale;
            a->dx[(3 * r + 2) * a->width + k] = w * a->scale;
        }
    }
}

ORDER(weigh_rows)
{
    for (int64_t r = 0; r < a->rows; r++) {
        if (a->label[r] < 0) continue;
        a->loss[r] *= a->weight[a->label[r]];
        for (int64_t k = 0; a->dx && k < a->width; k++) a->dx[r * a->width + k] *= a->weight[a->label[r]];
    }
}

ORDER(mean_labelled)
{
    for (int64_t e = 0; e < a->rows; e++) {
        const int32_t *label = a->label + e * a->places;
        int32_t labelled = 0;
        for (int64_t p = 0; p < a->places; p++)
            if (label[p] >= 0) labelled++;
        const float share = labelled ? 1 / (float)labelled : 0;
        for (int64_t p = 0; p < a->places; p++) {
            const float term = label[p] < 0 ? 0 : a->each_loss[e * a->places + p];
            number(label[p] >= 0 && a->weight ? term * a->weight[label[p]] : term);
        }
        a->loss[e] = lane_sum() * share;
        for (int64_t p = 0; p < a->places; p++) number(a->each_correct[e * a->places + p]);
        a->correct[e] = lane_sum() * share;
        for (int64_t i = 0; a->dx && i < a->places * a->classes; i++) {
            const int32_t own = label[i / a->classes];
            float *dx = a->dx + e * a->places * a->classes + i;
            if (own >= 0) *dx *= a->weight ? a->weight[own] * share : share;
        }
    }
}

ORDER(to_labels)
{
    for (int64_t i = 0; i < a->count; i++)
        a->y[i] = a->x[i] < 0 || !(a->x[i] < 2147483648.0f) ? 0 : (int32_t)truncf(a->x[i]);
}

static float row_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_sum_rows *a = arguments;
    for (int64_t r = first; r < end; r++) number(a->x[r + k]);
    return sum_chain(0);
}

ORDER(sum_rows)
{
    each_node(&a->cut, 1, a->y, row_leaf, a);
}
