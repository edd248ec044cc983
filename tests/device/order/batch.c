/* Batch normalization. */
#include "device/order/order.h"

#include "base/alloc.h"

#include <math.h>

/* The values of channel c in a microbatch, numbered from 0: where value i lies. */
static int64_t value_at(const struct tr_cut *cut, int64_t spatial, int64_t channels, int32_t m, int64_t i,
                        int64_t c)
{
    return (cut->row[m] * spatial + i) * channels + c;
}

static int64_t values_of(const struct tr_cut *cut, int64_t spatial, int32_t m)
{
    return (cut->row[m + 1] - cut->row[m]) * spatial;
}

ORDER(batch_norm_forward)
{
    const struct tr_cut *cut = &a->cut;
    float *shares = tr_alloc_zero(2 * (size_t)(cut->count * a->channels) + 1, sizeof *shares);
    float *of_var = shares + cut->count * a->channels;
    for (int64_t k = 0; k < cut->count * a->channels; k++) {
        const int32_t m = (int32_t)(k / a->channels);
        const int64_t c = k % a->channels, n = values_of(cut, a->spatial, m);
        const float rows = (float)(cut->row[m + 1] - cut->row[m]), share = rows / (float)a->global_rows;
        a->mean[k] = a->inv[k] = 0;
        if (n == 0) continue;
        for (int64_t i = 0; i < n; i++) number(a->x[value_at(cut, a->spatial, a->channels, m, i, c)]);
        a->mean[k] = sum_chain(0) / (float)n;
        for (int64_t i = 0; i < n; i++) {
            const float d = a->x[value_at(cut, a->spatial, a->channels, m, i, c)] - a->mean[k];
            term(d, d);
        }
        const float var = chain(0) / (float)n;
        a->inv[k] = 1 / sqrtf(var + a->epsilon);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = value_at(cut, a->spatial, a->channels, m, i, c);
            a->y[at] = fused((a->x[at] - a->mean[k]) * a->inv[k], a->gamma[c], a->beta[c]);
        }
        shares[k] = share * a->mean[k];
        of_var[k] = share * (var * (n > 1 ? (float)n / (float)(n - 1) : 1));
    }
    for (int64_t k = 0; k < cut->nodes * a->channels; k++) {
        const int64_t node = k / a->channels, c = k % a->channels;
        for (int32_t m = cut->bound[node]; m < cut->bound[node + 1]; m++) leaf(shares[m * a->channels + c]);
        a->batch_mean[node * cut->stride + c] = tree();
        for (int32_t m = cut->bound[node]; m < cut->bound[node + 1]; m++) leaf(of_var[m * a->channels + c]);
        a->batch_var[node * cut->stride + c] = tree();
    }
    tr_free(shares);
}

static float hat(const struct tr_op_batch_norm_backward *a, int32_t m, int64_t at)
{
    const int64_t k = m * a->channels + at % a->channels;
    return (a->x[at] - a->mean[k]) * a->inv[k];
}

ORDER(batch_norm_backward)
{
    const struct tr_cut *cut = &a->cut;
    float *sums = tr_alloc_zero(2 * (size_t)(cut->count * a->channels) + 1, sizeof *sums);
    float *products = sums + cut->count * a->channels;
    for (int64_t k = 0; k < cut->count * a->channels; k++) {
        const int32_t m = (int32_t)(k / a->channels);
        const int64_t c = k % a->channels, n = values_of(cut, a->spatial, m);
        for (int64_t i = 0; i < n; i++) number(a->dy[value_at(cut, a->spatial, a->channels, m, i, c)]);
        sums[k] = sum_chain(0);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = value_at(cut, a->spatial, a->channels, m, i, c);
            term(a->dy[at], hat(a, m, at));
        }
        products[k] = chain(0);
        for (int64_t i = 0; a->dx && i < n; i++) {
            const int64_t at = value_at(cut, a->spatial, a->channels, m, i, c);
            const float rest = a->dy[at] - sums[k] / (float)n;
            a->dx[at] = (a->gamma[c] * a->inv[k]) * fused(-hat(a, m, at), products[k] / (float)n, rest);
        }
    }
    for (int64_t k = 0; k < cut->nodes * a->channels; k++) {
        const int64_t node = k / a->channels, c = k % a->channels;
        for (int32_t m = cut->bound[node]; m < cut->bound[node + 1]; m++) leaf(products[m * a->channels + c]);
        a->dgamma[node * cut->stride + c] = tree();
        for (int32_t m = cut->bound[node]; m < cut->bound[node + 1]; m++) leaf(sums[m * a->channels + c]);
        a->dbeta[node * cut->stride + c] = tree();
    }
    tr_free(sums);
}

ORDER(batch_norm_infer)
{
    for (int64_t i = 0; i < a->rows * a->channels; i++) {
        const int64_t c = i % a->channels;
        const float inv = 1 / sqrtf(a->var[c] + a->epsilon);
        a->y[i] = fused((a->x[i] - a->mean[c]) * inv, a->gamma[c], a->beta[c]);
    }
}

ORDER(batch_norm_activation_forward)
{
    order_batch_norm_forward(&a->norm);
    for (int64_t i = 0; i < rows_of(&a->norm.cut) * a->norm.spatial * a->norm.channels; i++) {
        if (a->addend) a->norm.y[i] += a->addend[i];
        a->norm.y[i] = activated(a->activation, a->slope, a->norm.y[i]);
    }
}

ORDER(batch_norm_activation_backward)
{
    const int64_t count = rows_of(&a->norm.cut) * a->norm.spatial * a->norm.channels;
    struct tr_op_batch_norm_backward norm = a->norm;
    float *dy = tr_alloc_zero((size_t)count + 1, sizeof *dy);
    for (int64_t i = 0; i < count; i++) dy[i] = a->more ? a->norm.dy[i] + a->more[i] : a->norm.dy[i];
    order_activation_backward(&(struct tr_op_activation_backward){
        .count = count, .y = a->y, .dy = dy, .dx = dy, .activation = a->activation, .slope = a->slope});
    for (int64_t i = 0; a->daddend && i < count; i++) a->daddend[i] = dy[i];
    norm.dy = dy;
    order_batch_norm_backward(&norm);
    tr_free(dy);
}
