/* Softmax, normalizations of rows and of groups of channels, and losses. */
#include "device/order/order.h"

#include "base/numbers/mathf.h"

ORDER(softmax_forward)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->width;
        float *y = a->y + r * a->width;
        for (int64_t k = 0; k < a->width; k++) number(x[k]);
        const float m = x[greatest()];
        for (int64_t k = 0; k < a->width; k++) number(y[k] = tr_expf(x[k] - m));
        const float sum = lane_sum();
        for (int64_t k = 0; k < a->width; k++) y[k] = y[k] / sum;
    }
}

ORDER(softmax_backward)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *y = a->y + r * a->width, *dy = a->dy + r * a->width;
        for (int64_t k = 0; k < a->width; k++) term(y[k], dy[k]);
        const float sum = lane_chain();
        for (int64_t k = 0; k < a->width; k++) a->dx[r * a->width + k] = y[k] * (dy[k] - sum);
    }
}

ORDER(layer_norm_forward)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->width;
        for (int64_t k = 0; k < a->width; k++) number(x[k]);
        const float mean = lane_sum() / (float)a->width;
        for (int64_t k = 0; k < a->width; k++) term(x[k] - mean, x[k] - mean);
        const float inv = 1 / sqrtf(lane_chain() / (float)a->width + a->epsilon);
        for (int64_t k = 0; k < a->width; k++)
            a->y[r * a->width + k] = fused((x[k] - mean) * inv, a->gamma[k], a->beta[k]);
        a->mean[r] = mean;
        a->inv[r] = inv;
    }
}

static float layer_gamma_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    for (int64_t r = first; r < end; r++)
        term(a->dy[r * a->width + k], (a->x[r * a->width + k] - a->mean[r]) * a->inv[r]);
    return chain(0);
}

static float layer_beta_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    for (int64_t r = first; r < end; r++) number(a->dy[r * a->width + k]);
    return sum_chain(0);
}

ORDER(layer_norm_backward)
{
    for (int64_t r = 0; a->dx && r < rows_of(&a->cut); r++) {
        const float *x = a->x + r * a->width, *dy = a->dy + r * a->width;
        for (int64_t k = 0; k < a->width; k++) number(dy[k] * a->gamma[k]);
        const float mean = lane_sum() / (float)a->width;
        for (int64_t k = 0; k < a->width; k++) term(dy[k] * a->gamma[k], (x[k] - a->mean[r]) * a->inv[r]);
        const float product = lane_chain() / (float)a->width;
        for (int64_t k = 0; k < a->width; k++)
            a->dx[r * a->width + k] =
                a->inv[r] * fused(-((x[k] - a->mean[r]) * a->inv[r]), product, dy[k] * a->gamma[k] - mean);
    }
    each_node(&a->cut, a->width, a->dgamma, layer_gamma_leaf, a);
    each_node(&a->cut, a->width, a->dbeta, layer_beta_leaf, a);
}

ORDER(rms_norm_forward)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->width;
        for (int64_t k = 0; k < a->width; k++) term(x[k], x[k]);
        a->inv[r] = 1 / sqrtf(lane_chain() / (float)a->width + a->epsilon);
        for (int64_t k = 0; k < a->width; k++) a->y[r * a->width + k] = (x[k] * a->inv[r]) * a->gamma[k];
    }
}

static float rms_gamma_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_rms_norm_backward *a = arguments;
    for (int64_t r = first; r < end; r++) term(a->dy[r * a->width + k], a->x[r * a->width + k] * a->inv[r]);
    return chain(0);
}

ORDER(rms_norm_backward)
{
    for (int64_t r = 0; a->dx && r < rows_of(&a->cut); r++) {
        const float *x = a->x + r * a->width, *dy = a->dy + r * a->width;
        for (int64_t k = 0; k < a->width; k++) term(dy[k] * a->gamma[k], x[k] * a->inv[r]);
        const float product = lane_chain() / (float)a->width;
        for (int64_t k = 0; k < a->width; k++)
            a->dx[r * a->width + k] = a->inv[r] * fused(-(x[k] * a->inv[r]), product, dy[k] * a->gamma[k]);
    }
    each_node(&a->cut, a->width, a->dgamma, rms_gamma_leaf, a);
}

ORDER(group_norm_forward)
{
    const int64_t each = a->channels / a->groups;
    const float n = (float)(each * a->spatial);
    for (int64_t i = 0; i < a->rows * a->groups; i++) {
        const int64_t begin = i / a->groups * a->spatial * a->channels + i % a->groups * each;
        float s[128];
        for (int64_t c = 0; c < each; c++) {
            for (int64_t p = 0; p < a->spatial; p++) number(a->x[begin + p * a->channels + c]);
            s[c] = sum_chain(0);
        }
        for (int64_t c = 0; c < each; c++) number(s[c]);
        const float mean = a->mean[i] = sum_chain(0) / n;
        for (int64_t c = 0; c < each; c++) {
            for (int64_t p = 0; p < a->spatial; p++) {
                const float d = a->x[begin + p * a->channels + c] - mean;
                term(d, d);
            }
            s[c] = chain(0);
        }
        for (int64_t c = 0; c < each; c++) number(s[c]);
        a->inv[i] = 1 / sqrtf(sum_chain(0) / n + a->epsilon);
        for (int64_t c = 0; c < each; c++)
            for (int64_t p = 0; p < a->spatial; p++) {
                const int64_t at = begin + p * a->channels + c, k = i % a->groups * each + c;
                a->y[at] = fused((a->x[at] - mean) * a->inv[i], a->gamma[k], a->beta[k]);
            }
    }
}

/* Of channel k in row r: sums over positions of dy, and of dy times the normalized number. */
static float group_sum(const struct tr_op_group_norm_backward *a, int64_t r, int64_t k)
{
    for (int64_t p = 0; p < a->spatial; p++) number(a->dy[(r * a->spatial + p) * a->channels + k]);
    return sum_chain(0);
}

static float group_hat(const struct tr_op_group_norm_backward *a, int64_t r, int64_t p, int64_t k)
{
    const int64_t group = r * a->groups + k * a->groups / a->channels;
    return (a->x[(r * a->spatial + p) * a->channels + k] - a->mean[group]) * a->inv[group];
}

static float group_product(const struct tr_op_group_norm_backward *a, int64_t r, int64_t k)
{
    for (int64_t p = 0; p < a->spatial; p++)
        term(a->dy[(r * a->spatial + p) * a->channels + k], group_hat(a, r, p, k));
    return chain(0);
}

static float group_gamma_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    float s[64];
    for (int64_t r = first; r < end; r++) s[r - first] = group_product(arguments, r, k);
    for (int64_t r = first; r < end; r++) number(s[r - first]);
    return sum_chain(0);
}

static float group_beta_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    float s[64];
    for (int64_t r = first; r < end; r++) s[r - first] = group_sum(arguments, r, k);
    for (int64_t r = first; r < end; r++) number(s[r - first]);
    return sum_chain(0);
}

ORDER(group_norm_backward)
{
    const int64_t each = a->channels / a->groups;
    const float n = (float)(each * a->spatial);
    for (int64_t i = 0; a->dx && i < rows_of(&a->cut) * a->groups; i++) {
        const int64_t r = i / a->groups, first = i % a->groups * each;
        float sum[128], product[128];
        for (int64_t c = 0; c < each; c++) {
            sum[c] = group_sum(a, r, first + c);
            product[c] = group_product(a, r, first + c);
        }
        for (int64_t c = 0; c < each; c++) term(a->gamma[first + c], sum[c]);
        const float mean = chain(0) / n;
        for (int64_t c = 0; c < each; c++) term(a->gamma[first + c], product[c]);
        const float slope = chain(0) / n;
        for (int64_t p = 0; p < a->spatial; p++)
            for (int64_t k = first; k < first + each; k++) {
                const int64_t at = (r * a->spatial + p) * a->channels + k;
                a->dx[at] = a->inv[i] * fused(-group_hat(a, r, p, k), slope, a->dy[at] * a->gamma[k] - mean);
            }
    }
    each_node(&a->cut, a->channels, a->dgamma, group_gamma_leaf, a);
    each_node(&a->cut, a->channels, a->dbeta, group_beta_leaf, a);
}
