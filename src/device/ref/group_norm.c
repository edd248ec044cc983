/* Group normalization: each row has statistics for each group of channels. The numbers of a row are read
 * in ascending order of positions within a channel, then of channels within their group.
 */
#include "device/ref/ref.h"
#include "device/ref/loops/tree.h"

#include <math.h>

static void normalize_group(const struct tr_op_group_norm_forward *a, int64_t r, int64_t g)
{
    const int64_t width = a->channels / a->groups, size = a->spatial * a->channels;
    const float *x = a->x + r * size, n = (float)(a->spatial * width);
    float sum = 0, squares = 0;
    for (int64_t c = g * width; c < (g + 1) * width; c++) {
        float own = 0;
        for (int64_t i = c; i < size; i += a->channels) own += x[i];
        sum += own;
    }
    const float mean = sum / n;
    for (int64_t c = g * width; c < (g + 1) * width; c++) {
        float own = 0;
        for (int64_t i = c; i < size; i += a->channels) own = fmaf(x[i] - mean, x[i] - mean, own);
        squares += own;
    }
    const float inv = 1 / sqrtf(squares / n + a->epsilon);
    for (int64_t c = g * width; c < (g + 1) * width; c++)
        for (int64_t i = c; i < size; i += a->channels)
            a->y[r * size + i] = fmaf((x[i] - mean) * inv, a->gamma[c], a->beta[c]);
    a->mean[r * a->groups + g] = mean;
    a->inv[r * a->groups + g] = inv;
}

tr_status ref_group_norm_forward(tr_device *device, const struct tr_op_group_norm_forward *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t g = 0; g < a->groups; g++) normalize_group(a, r, g);
    return TR_OK;
}

static float group_norm_xhat(const struct tr_op_group_norm_backward *a, int64_t r, int64_t i, int64_t c)
{
    const int64_t at = r * a->groups + c / (a->channels / a->groups);
    return (a->x[r * a->spatial * a->channels + i] - a->mean[at]) * a->inv[at];
}

/* Over the positions of a row: the sum chain of dy, and the chain of dy * xhat. */
static float sum_of_channel(const struct tr_op_group_norm_backward *a, int64_t r, int64_t c)
{
    const int64_t size = a->spatial * a->channels;
    float sum = 0;
    for (int64_t i = c; i < size; i += a->channels) sum += a->dy[r * size + i];
    return sum;
}

static float product_of_channel(const struct tr_op_group_norm_backward *a, int64_t r, int64_t c)
{
    const int64_t size = a->spatial * a->channels;
    float product = 0;
    for (int64_t i = c; i < size; i += a->channels)
        product = fmaf(a->dy[r * size + i], group_norm_xhat(a, r, i, c), product);
    return product;
}

static void group_norm_backward_group(const struct tr_op_group_norm_backward *a, int64_t r, int64_t g)
{
    const int64_t width = a->channels / a->groups, size = a->spatial * a->channels;
    const float n = (float)(a->spatial * width);
    float sum = 0, product = 0;
    for (int64_t c = g * width; c < (g + 1) * width; c++) {
        sum = fmaf(a->gamma[c], sum_of_channel(a, r, c), sum);
        product = fmaf(a->gamma[c], product_of_channel(a, r, c), product);
    }
    const float mean = sum / n, mean_product = product / n;
    for (int64_t c = g * width; c < (g + 1) * width; c++)
        for (int64_t i = c; i < size; i += a->channels)
            a->dx[r * size + i] = a->inv[r * a->groups + g] * fmaf(-group_norm_xhat(a, r, i, c), mean_product,
                                                                   a->dy[r * size + i] * a->gamma[c] - mean);
}

static void group_gamma_leaf(const void *arguments, int32_t microbatch, float *dgamma)
{
    const struct tr_op_group_norm_backward *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t c = 0; c < a->channels; c++) dgamma[c] += product_of_channel(a, r, c);
}

static void group_beta_leaf(const void *arguments, int32_t microbatch, float *dbeta)
{
    const struct tr_op_group_norm_backward *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t c = 0; c < a->channels; c++) dbeta[c] += sum_of_channel(a, r, c);
}

tr_status ref_group_norm_backward(tr_device *device, const struct tr_op_group_norm_backward *a)
{
    (void)device;
    const int64_t rows = ref_cut_rows(&a->cut);
    for (int64_t r = 0; a->dx && r < rows; r++)
        for (int64_t g = 0; g < a->groups; g++) group_norm_backward_group(a, r, g);
    tr_status status = ref_tree(&a->cut, a->channels, group_gamma_leaf, a, a->dgamma);
    return status == TR_OK ? ref_tree(&a->cut, a->channels, group_beta_leaf, a, a->dbeta) : status;
}
