/* Batch normalization backward. */
#include "base/fail.h"
#include "device/cpu/norm/batch_norm.h"

struct backward {
    const struct tr_op_batch_norm_backward *op;
    const float *more, *y, *beta; /* as in struct tr_op_batch_norm_activation_backward */
    float *daddend;
    enum tr_activation activation;
    float slope;
    const struct cpu_device *cpu;
    float *sum, *product; /* s1 and s2, [microbatches][channels] */
    int32_t microbatch;
};

/* The gradient that passes the activation, for vector v at element i. Without an addend the output's sign
   is that of the normalized value, which costs less than reading the output. */
V_INLINE vf incoming(const struct backward *b, const enum tr_activation activation, vf slope, vf xhat,
                     vf gamma, vf beta, int64_t i, int v, int64_t valid)
{
    vf dy = column_load(b->op->dy + i, v, valid);
    if (b->more) dy = v_add(dy, column_load(b->more + i, v, valid));
    if (activation == TR_ACT_NONE) return dy;
    const vf y = b->beta ? v_fma(xhat, gamma, beta) : column_load(b->y + i, v, valid);
    return v_select(v_gt(y, v_zero()), dy, activation == TR_ACT_RELU ? v_zero() : v_mul(slope, dy));
}

/* The activation is a constant where this is inlined. */
V_INLINE void backward_group(const struct backward *b, const enum tr_activation activation, const int vectors,
                             int64_t channel, int64_t valid)
{
    const struct tr_op_batch_norm_backward *a = b->op;
    int64_t begin = a->cut.row[b->microbatch] * a->spatial, end = a->cut.row[b->microbatch + 1] * a->spatial;
    int64_t at = b->microbatch * a->channels + channel;
    const vf slope_below = v_set1(b->slope);
    vf mean[COLUMN_VECTORS], inv[COLUMN_VECTORS], sum[COLUMN_VECTORS], product[COLUMN_VECTORS];
    vf gamma[COLUMN_VECTORS], beta[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) {
        gamma[v] = column_load(a->gamma + channel, v, valid);
        beta[v] = b->beta ? column_load(b->beta + channel, v, valid) : v_zero();
        mean[v] = column_load(a->mean + at, v, valid);
        inv[v] = column_load(a->inv + at, v, valid);
        sum[v] = product[v] = v_zero();
    }
    for (int64_t p = begin; p < end; p++) {
        for (int v = 0; v < vectors; v++) {
            const int64_t i = p * a->channels + channel;
            vf xhat = v_mul(v_sub(column_load(a->x + i, v, valid), mean[v]), inv[v]);
            vf d = incoming(b, activation, slope_below, xhat, gamma[v], beta[v], i, v, valid);
            if (b->daddend) column_store(b->daddend + i, v, d, valid);
            sum[v] = v_add(sum[v], d);
            product[v] = v_fma(d, xhat, product[v]);
        }
    }
    vf n = v_set1((float)(end - begin)), slope[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) {
        column_store(b->sum + at, v, sum[v], valid);
        column_store(b->product + at, v, product[v], valid);
        sum[v] = v_div(sum[v], n);
        product[v] = v_div(product[v], n);
        slope[v] = v_mul(gamma[v], inv[v]);
    }
    if (!a->dx) return;
    for (int64_t p = end; p-- > begin;) {
        for (int v = 0; v < vectors; v++) {
            const int64_t i = p * a->channels + channel;
            vf xhat = v_mul(v_sub(column_load(a->x + i, v, valid), mean[v]), inv[v]);
            vf d = b->daddend ? column_load(b->daddend + i, v, valid)
                              : incoming(b, activation, slope_below, xhat, gamma[v], beta[v], i, v, valid);
            vf dx = v_mul(slope[v], v_fnma(xhat, product[v], v_sub(d, sum[v])));
            column_store(a->dx + i, v, dx, valid);
        }
    }
}

V_INLINE void backward_plain(const struct backward *b, const int vectors, int64_t channel, int64_t valid)
{
    backward_group(b, TR_ACT_NONE, vectors, channel, valid);
}

V_INLINE void backward_relu(const struct backward *b, const int vectors, int64_t channel, int64_t valid)
{
    backward_group(b, TR_ACT_RELU, vectors, channel, valid);
}

V_INLINE void backward_leaky(const struct backward *b, const int vectors, int64_t channel, int64_t valid)
{
    backward_group(b, TR_ACT_LEAKY_RELU, vectors, channel, valid);
}

static void backward_piece(const struct backward *b, struct batch_piece piece)
{
    if (b->activation == TR_ACT_RELU)
        COLUMN_GROUPS(backward_relu, b, piece.channel, piece.end);
    else if (b->activation == TR_ACT_LEAKY_RELU)
        COLUMN_GROUPS(backward_leaky, b, piece.channel, piece.end);
    else
        COLUMN_GROUPS(backward_plain, b, piece.channel, piece.end);
}

V_INLINE void gradient_group(const struct backward *b, const int vectors, int64_t channel, int64_t valid)
{
    const struct tr_op_batch_norm_backward *a = b->op;
    struct column_tree gammas, betas;
    column_tree_begin(&gammas);
    column_tree_begin(&betas);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            vf gamma[COLUMN_VECTORS], beta[COLUMN_VECTORS];
            for (int v = 0; v < vectors; v++) {
                gamma[v] = column_load(b->product + i * a->channels + channel, v, valid);
                beta[v] = column_load(b->sum + i * a->channels + channel, v, valid);
            }
            column_tree_push(&gammas, vectors, gamma);
            column_tree_push(&betas, vectors, beta);
        }
        const int64_t at = node * a->cut.stride + channel;
        column_tree_store(&gammas, vectors, a->dgamma + at, valid);
        column_tree_store(&betas, vectors, a->dbeta + at, valid);
    }
}

static void batch_norm_backward_part(void *arguments, int member, int size)
{
    struct backward b = *(const struct backward *)arguments;
    const struct tr_op_batch_norm_backward *a = b.op;
    struct batch_pieces pieces = pieces_of(a->cut.count, a->channels, member, size);
    for (int64_t i = pieces.end; i-- > pieces.begin;) {
        struct batch_piece piece = piece_at(&pieces, i);
        b.microbatch = piece.microbatch;
        backward_piece(&b, piece);
    }
    cpu_barrier(b.cpu, member, size);
    int64_t begin, end;
    tr_team_chunk(a->channels, COLUMN_GRAIN, member, size, &begin, &end);
    COLUMN_GROUPS(gradient_group, &b, begin, end);
}

static tr_status run_backward(tr_device *device, struct backward b)
{
    const struct tr_op_batch_norm_backward *a = b.op;
    if (a->cut.count == 0) return TR_OK;
    b.cpu = cpu_device_of(device);
    const size_t values = (size_t)a->cut.count * (size_t)a->channels;
    TR_TRY(cpu_reserve(cpu_device_of(device), 0, 2 * values * sizeof(float)));
    b.sum = cpu_shared(b.cpu);
    b.product = b.sum + values;
    cpu_run_together(cpu_device_of(device), 4 * batch_norm_cost(&a->cut, a->spatial, a->channels),
                     batch_norm_backward_part, &b);
    return TR_OK;
}

tr_status CPU_KERNEL(batch_norm_backward)(tr_device *device, const struct tr_op_batch_norm_backward *a)
{
    return run_backward(device, (struct backward){.op = a});
}

tr_status CPU_KERNEL(batch_norm_activation_backward)(tr_device *device,
                                                     const struct tr_op_batch_norm_activation_backward *a)
{
    return run_backward(device, (struct backward){.op = &a->norm,
                                                  .more = a->more,
                                                  .y = a->y,
                                                  .beta = a->beta,
                                                  .daddend = a->daddend,
                                                  .activation = a->activation,
                                                  .slope = a->slope});
}
