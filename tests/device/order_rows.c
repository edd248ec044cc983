/* Softmax and normalizations of rows. */
#include "device/order.h"

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
