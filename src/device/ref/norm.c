/* Operations on whole rows: softmax, layer and root mean square normalization. */
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/tree.h"

#include <math.h>

/* The lane sum of x [width]. */
static float lane_sum(int64_t width, const float *x)
{
    float lane[REF_LANES] = {0};
    for (int64_t k = 0; k < width; k++) lane[k % REF_LANES] += x[k];
    return ref_lanes_total(lane);
}

tr_status ref_softmax_forward(tr_device *device, const struct tr_op_softmax_forward *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->width;
        float *y = a->y + r * a->width;
        float greatest = x[ref_greatest(a->width, x)];
        for (int64_t k = 0; k < a->width; k++) y[k] = tr_expf(x[k] - greatest);
        float sum = lane_sum(a->width, y);
        for (int64_t k = 0; k < a->width; k++) y[k] = y[k] / sum;
    }
    return TR_OK;
}

tr_status ref_softmax_backward(tr_device *device, const struct tr_op_softmax_backward *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *y = a->y + r * a->width, *dy = a->dy + r * a->width;
        float *dx = a->dx + r * a->width, lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) lane[k % REF_LANES] = fmaf(y[k], dy[k], lane[k % REF_LANES]);
        float sum = ref_lanes_total(lane);
        for (int64_t k = 0; k < a->width; k++) dx[k] = y[k] * (dy[k] - sum);
    }
    return TR_OK;
}

tr_status ref_layer_norm_forward(tr_device *device, const struct tr_op_layer_norm_forward *a)
{
    (void)device;
    float width = (float)a->width;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->width;
        float mean = lane_sum(a->width, x) / width, lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) {
            float d = x[k] - mean;
            lane[k % REF_LANES] = fmaf(d, d, lane[k % REF_LANES]);
        }
        float inv = 1 / sqrtf(ref_lanes_total(lane) / width + a->epsilon);
        for (int64_t k = 0; k < a->width; k++)
            a->y[r * a->width + k] = fmaf((x[k] - mean) * inv, a->gamma[k], a->beta[k]);
        a->mean[r] = mean;
        a->inv[r] = inv;
    }
    return TR_OK;
}

/* The normalized value at column k of row r. */
static float layer_norm_xhat(const struct tr_op_layer_norm_backward *a, int64_t r, int64_t k)
{
    return (a->x[r * a->width + k] - a->mean[r]) * a->inv[r];
}

/* The chain over the rows of a microbatch of dy * xhat. */
static void gamma_leaf(const void *arguments, int32_t microbatch, float *dgamma)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t k = 0; k < a->width; k++)
            dgamma[k] = fmaf(a->dy[r * a->width + k], layer_norm_xhat(a, r, k), dgamma[k]);
}

/* The sum chain over the rows of a microbatch of dy. */
static void beta_leaf(const void *arguments, int32_t microbatch, float *dbeta)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t k = 0; k < a->width; k++) dbeta[k] += a->dy[r * a->width + k];
}

static void layer_norm_backward_row(const struct tr_op_layer_norm_backward *a, int64_t r)
{
    const float *dy = a->dy + r * a->width;
    float sums[REF_LANES] = {0}, products[REF_LANES] = {0}, width = (float)a->width;
    for (int64_t k = 0; k < a->width; k++) {
        float g = dy[k] * a->gamma[k];
        sums[k % REF_LANES] += g;
        products[k % REF_LANES] = fmaf(g, layer_norm_xhat(a, r, k), products[k % REF_LANES]);
    }
    float mean_g = ref_lanes_total(sums) / width, mean_gx = ref_lanes_total(products) / width;
    for (int64_t k = 0; k < a->width; k++) {
        float g = dy[k] * a->gamma[k];
        a->dx[r * a->width + k] = a->inv[r] * fmaf(-layer_norm_xhat(a, r, k), mean_gx, g - mean_g);
    }
}

tr_status ref_layer_norm_backward(tr_device *device, const struct tr_op_layer_norm_backward *a)
{
    (void)device;
    int64_t rows = ref_cut_rows(&a->cut);
    for (int64_t r = 0; a->dx && r < rows; r++) layer_norm_backward_row(a, r);
    tr_status status = ref_tree(&a->cut, a->width, gamma_leaf, a, a->dgamma);
    return status == TR_OK ? ref_tree(&a->cut, a->width, beta_leaf, a, a->dbeta) : status;
}

tr_status ref_rms_norm_forward(tr_device *device, const struct tr_op_rms_norm_forward *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->width;
        float lane[REF_LANES] = {0};
        for (int64_t k = 0; k < a->width; k++) lane[k % REF_LANES] = fmaf(x[k], x[k], lane[k % REF_LANES]);
        float inv = 1 / sqrtf(ref_lanes_total(lane) / (float)a->width + a->epsilon);
        for (int64_t k = 0; k < a->width; k++) a->y[r * a->width + k] = x[k] * inv * a->gamma[k];
        a->inv[r] = inv;
    }
    return TR_OK;
}

static void rms_gamma_leaf(const void *arguments, int32_t microbatch, float *dgamma)
{
    const struct tr_op_rms_norm_backward *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t k = 0; k < a->width; k++)
            dgamma[k] = fmaf(a->dy[r * a->width + k], a->x[r * a->width + k] * a->inv[r], dgamma[k]);
}

static void rms_norm_backward_row(const struct tr_op_rms_norm_backward *a, int64_t r)
{
    const float *x = a->x + r * a->width, *dy = a->dy + r * a->width;
    float products[REF_LANES] = {0};
    for (int64_t k = 0; k < a->width; k++)
        products[k % REF_LANES] = fmaf(dy[k] * a->gamma[k], x[k] * a->inv[r], products[k % REF_LANES]);
    float mean = ref_lanes_total(products) / (float)a->width;
    for (int64_t k = 0; k < a->width; k++)
        a->dx[r * a->width + k] = a->inv[r] * fmaf(-(x[k] * a->inv[r]), mean, dy[k] * a->gamma[k]);
}

tr_status ref_rms_norm_backward(tr_device *device, const struct tr_op_rms_norm_backward *a)
{
    (void)device;
    int64_t rows = ref_cut_rows(&a->cut);
    for (int64_t r = 0; a->dx && r < rows; r++) rms_norm_backward_row(a, r);
    return ref_tree(&a->cut, a->width, rms_gamma_leaf, a, a->dgamma);
}
