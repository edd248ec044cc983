/* Batch normalization. Each microbatch has separate statistics; one without rows has mean, inv and
 * contributions +0. The values of a channel in a microbatch are read in ascending order of (row,
 * position).
 */
#include "device/ref/ref.h"
#include "device/ref/loops/tree.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>

/* A microbatch's part of a tensor [rows][spatial][channels]. */
struct part {
    int64_t begin, end; /* positions, rows * spatial of them */
    float n;            /* values per channel */
};

static struct part part_of(const struct tr_cut *cut, int32_t microbatch, int64_t spatial)
{
    int64_t begin = cut->row[microbatch] * spatial, end = cut->row[microbatch + 1] * spatial;
    return (struct part){begin, end, (float)(end - begin)};
}

/* The statistics of channel c over a part. */
static void channel_statistics(const struct tr_op_batch_norm_forward *a, struct part part, int64_t c,
                               float *mean, float *var)
{
    float sum = 0, squares = 0;
    for (int64_t p = part.begin; p < part.end; p++) sum += a->x[p * a->channels + c];
    *mean = sum / part.n;
    for (int64_t p = part.begin; p < part.end; p++) {
        float d = a->x[p * a->channels + c] - *mean;
        squares = fmaf(d, d, squares);
    }
    *var = squares / part.n;
}

static void normalize_part(const struct tr_op_batch_norm_forward *a, int32_t microbatch, float *vars)
{
    struct part part = part_of(&a->cut, microbatch, a->spatial);
    for (int64_t c = 0; c < a->channels; c++) {
        int64_t at = microbatch * a->channels + c;
        if (part.begin == part.end) {
            a->mean[at] = a->inv[at] = vars[at] = 0;
            continue;
        }
        channel_statistics(a, part, c, &a->mean[at], &vars[at]);
        a->inv[at] = 1 / sqrtf(vars[at] + a->epsilon);
        for (int64_t i = part.begin * a->channels + c; i < part.end * a->channels; i += a->channels)
            a->y[i] = fmaf((a->x[i] - a->mean[at]) * a->inv[at], a->gamma[c], a->beta[c]);
    }
}

struct statistics_arguments {
    const struct tr_op_batch_norm_forward *op;
    const float *vars; /* [count of microbatches][channels] */
};

static float share_of(const struct tr_op_batch_norm_forward *a, int32_t microbatch)
{
    return (float)(a->cut.row[microbatch + 1] - a->cut.row[microbatch]) / (float)a->global_rows;
}

static void mean_leaf(const void *arguments, int32_t microbatch, float *leaf)
{
    const struct tr_op_batch_norm_forward *a = arguments;
    float share = share_of(a, microbatch);
    for (int64_t c = 0; c < a->channels; c++) leaf[c] = share * a->mean[microbatch * a->channels + c];
}

static void var_leaf(const void *arguments, int32_t microbatch, float *leaf)
{
    const struct statistics_arguments *with = arguments;
    const struct tr_op_batch_norm_forward *a = with->op;
    struct part part = part_of(&a->cut, microbatch, a->spatial);
    float share = share_of(a, microbatch);
    float unbiased = part.end - part.begin > 1 ? part.n / (float)(part.end - part.begin - 1) : 1;
    for (int64_t c = 0; c < a->channels; c++)
        leaf[c] = share * (with->vars[microbatch * a->channels + c] * unbiased);
}

tr_status ref_batch_norm_forward(tr_device *device, const struct tr_op_batch_norm_forward *a)
{
    (void)device;
    float *vars = tr_alloc((size_t)a->cut.count * (size_t)a->channels, sizeof *vars);
    if (!vars) return TR_ENOMEM;
    for (int32_t i = 0; i < a->cut.count; i++) normalize_part(a, i, vars);
    struct statistics_arguments with = {a, vars};
    tr_status status = ref_tree(&a->cut, a->channels, mean_leaf, a, a->batch_mean);
    if (status == TR_OK) status = ref_tree(&a->cut, a->channels, var_leaf, &with, a->batch_var);
    tr_free(vars);
    return status;
}

/* The normalized value of element i, channel c, of a microbatch. */
static float batch_norm_xhat(const struct tr_op_batch_norm_backward *a, int32_t microbatch, int64_t i,
                             int64_t c)
{
    int64_t at = microbatch * a->channels + c;
    return (a->x[i] - a->mean[at]) * a->inv[at];
}

/* s2: the chain of dy * xhat. */
static void gamma_leaf(const void *arguments, int32_t microbatch, float *dgamma)
{
    const struct tr_op_batch_norm_backward *a = arguments;
    struct part part = part_of(&a->cut, microbatch, a->spatial);
    for (int64_t p = part.begin; p < part.end; p++)
        for (int64_t c = 0, i = p * a->channels; c < a->channels; c++, i++)
            dgamma[c] = fmaf(a->dy[i], batch_norm_xhat(a, microbatch, i, c), dgamma[c]);
}

/* s1: the sum chain of dy. */
static void beta_leaf(const void *arguments, int32_t microbatch, float *dbeta)
{
    const struct tr_op_batch_norm_backward *a = arguments;
    struct part part = part_of(&a->cut, microbatch, a->spatial);
    for (int64_t p = part.begin; p < part.end; p++)
        for (int64_t c = 0; c < a->channels; c++) dbeta[c] += a->dy[p * a->channels + c];
}

/* s1 and s2 [channels] are working memory. */
static void backward_part(const struct tr_op_batch_norm_backward *a, int32_t microbatch, float *s1, float *s2)
{
    struct part part = part_of(&a->cut, microbatch, a->spatial);
    for (int64_t c = 0; c < a->channels; c++) s1[c] = s2[c] = 0;
    beta_leaf(a, microbatch, s1);
    gamma_leaf(a, microbatch, s2);
    for (int64_t p = part.begin; p < part.end; p++) {
        for (int64_t c = 0, i = p * a->channels; c < a->channels; c++, i++) {
            float mean_dy = s1[c] / part.n, mean_product = s2[c] / part.n;
            float slope = a->gamma[c] * a->inv[microbatch * a->channels + c];
            a->dx[i] = slope * fmaf(-batch_norm_xhat(a, microbatch, i, c), mean_product, a->dy[i] - mean_dy);
        }
    }
}

tr_status ref_batch_norm_backward(tr_device *device, const struct tr_op_batch_norm_backward *a)
{
    (void)device;
    float *sums = tr_alloc(2 * (size_t)a->channels, sizeof *sums);
    if (!sums) return TR_ENOMEM;
    for (int32_t i = 0; a->dx && i < a->cut.count; i++) backward_part(a, i, sums, sums + a->channels);
    tr_free(sums);
    tr_status status = ref_tree(&a->cut, a->channels, gamma_leaf, a, a->dgamma);
    return status == TR_OK ? ref_tree(&a->cut, a->channels, beta_leaf, a, a->dbeta) : status;
}

tr_status ref_batch_norm_activation_forward(tr_device *device,
                                            const struct tr_op_batch_norm_activation_forward *a)
{
    int64_t count = a->norm.cut.row[a->norm.cut.count] * a->norm.spatial * a->norm.channels;
    float *y = a->norm.y;
    const struct tr_op_add add = {count, y, a->addend, y};
    const struct tr_op_activation_forward activation = {count, y, y, a->activation, a->slope};
    TR_TRY(ref_batch_norm_forward(device, &a->norm));
    if (a->addend) TR_TRY(ref_add(device, &add));
    return ref_activation_forward(device, &activation);
}

tr_status ref_batch_norm_activation_backward(tr_device *device,
                                             const struct tr_op_batch_norm_activation_backward *a)
{
    int64_t count = a->norm.cut.row[a->norm.cut.count] * a->norm.spatial * a->norm.channels;
    struct tr_op_batch_norm_backward norm = a->norm;
    float *g = tr_alloc((size_t)count + 1, sizeof *g);
    if (!g) return TR_ENOMEM;
    const struct tr_op_scale copy = {count, 1, norm.dy, g};
    const struct tr_op_add add = {count, norm.dy, a->more, g};
    const struct tr_op_activation_backward activation = {count, NULL, a->y, g, g, a->activation, a->slope};
    const struct tr_op_scale hand_on = {count, 1, g, a->daddend};
    norm.dy = g;
    tr_status status = a->more ? ref_add(device, &add) : ref_scale(device, &copy);
    if (status == TR_OK) status = ref_activation_backward(device, &activation);
    if (status == TR_OK && a->daddend) status = ref_scale(device, &hand_on);
    if (status == TR_OK) status = ref_batch_norm_backward(device, &norm);
    tr_free(g);
    return status;
}

tr_status ref_batch_norm_infer(tr_device *device, const struct tr_op_batch_norm_infer *a)
{
    (void)device;
    for (int64_t c = 0; c < a->channels; c++) {
        float inv = 1 / sqrtf(a->var[c] + a->epsilon);
        for (int64_t i = c; i < a->rows * a->channels; i += a->channels)
            a->y[i] = fmaf((a->x[i] - a->mean[c]) * inv, a->gamma[c], a->beta[c]);
    }
    return TR_OK;
}
