/* Batch normalization, alone and with the sum and activation behind it. The work is cut into pieces, a
 * microbatch by a block of channels each, so that a piece's data is read again while it is near; the trees
 * over microbatches follow when all pieces are done.
 *
 * A microbatch is often more than the second-level cache holds. Sums over it are chains and go forwards; what
 * then is done with each element goes backwards, and so begins with what has just been read. Pieces go
 * backwards, too: the operation before has just written the last one, the one behind begins with the first.
 */
#include "base/fail.h"
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

#include <math.h>

#define NANOSECONDS_PER_ELEMENT (4.0 / VW)

static double cost(const struct tr_cut *cut, int64_t spatial, int64_t channels)
{
    return (double)cut->row[cut->count] * (double)spatial * (double)channels * NANOSECONDS_PER_ELEMENT;
}

/* Channels per piece: full groups, or less where members would have nothing to do. */
static int64_t piece_channels(int32_t microbatches, int64_t channels, int size)
{
    int64_t groups = (channels + COLUMN_GROUP - 1) / COLUMN_GROUP;
    return microbatches * groups < 2 * size ? COLUMN_GRAIN : COLUMN_GROUP;
}

struct piece {
    int32_t microbatch;
    int64_t channel, end; /* channels [channel, end) */
};

/* Pieces of a call and what a member takes of them. */
struct pieces {
    int64_t begin, end, blocks, width, channels;
};

static struct pieces pieces_of(int32_t microbatches, int64_t channels, int member, int size)
{
    struct pieces p = {.width = piece_channels(microbatches, channels, size), .channels = channels};
    p.blocks = (channels + p.width - 1) / p.width;
    tr_team_share(microbatches * p.blocks, 1, member, size, &p.begin, &p.end);
    return p;
}

static struct piece piece_at(const struct pieces *p, int64_t index)
{
    int64_t channel = index % p->blocks * p->width, end = channel + p->width;
    return (struct piece){(int32_t)(index / p->blocks), channel, end < p->channels ? end : p->channels};
}

/* ---- forward ---- */

struct forward {
    const struct tr_op_batch_norm_forward *op;
    const float *addend; /* or NULL */
    enum tr_activation activation;
    float slope;
    const struct cpu_device *cpu;
    float *var;         /* [microbatches][channels] */
    int32_t microbatch; /* of the piece under way; each member has its own copy */
};

V_INLINE vf activated(const enum tr_activation activation, vf slope, vf x)
{
    if (activation == TR_ACT_RELU) return v_select(v_gt(v_zero(), x), v_zero(), x);
    if (activation == TR_ACT_LEAKY_RELU) return v_select(v_gt(v_zero(), x), v_mul(slope, x), x);
    return x;
}

/* The activation is known where this is expanded. */
V_INLINE void forward_group(const struct forward *f, const enum tr_activation activation, const int vectors,
                            int64_t channel, int64_t valid)
{
    const struct tr_op_batch_norm_forward *a = f->op;
    int64_t begin = a->cut.row[f->microbatch] * a->spatial, end = a->cut.row[f->microbatch + 1] * a->spatial;
    int64_t at = f->microbatch * a->channels + channel;
    vf n = v_set1((float)(end - begin)), epsilon = v_set1(a->epsilon);
    vf mean[COLUMN_VECTORS], var[COLUMN_VECTORS], inv[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) mean[v] = var[v] = inv[v] = v_zero();
    if (begin < end) {
        const float *x = a->x + channel;
        for (int64_t p = begin; p < end; p++)
            for (int v = 0; v < vectors; v++)
                mean[v] = v_add(mean[v], column_load(x + p * a->channels, v, valid));
        for (int v = 0; v < vectors; v++) mean[v] = v_div(mean[v], n);
        for (int64_t p = begin; p < end; p++) {
            for (int v = 0; v < vectors; v++) {
                vf d = v_sub(column_load(x + p * a->channels, v, valid), mean[v]);
                var[v] = v_fma(d, d, var[v]);
            }
        }
        for (int v = 0; v < vectors; v++) {
            var[v] = v_div(var[v], n);
            inv[v] = v_div(v_set1(1.0f), v_sqrt(v_add(var[v], epsilon)));
        }
        vf gamma[COLUMN_VECTORS], beta[COLUMN_VECTORS];
        for (int v = 0; v < vectors; v++) {
            gamma[v] = column_load(a->gamma + channel, v, valid);
            beta[v] = column_load(a->beta + channel, v, valid);
        }
        const vf slope = v_set1(f->slope);
        for (int64_t p = end; p-- > begin;) {
            for (int v = 0; v < vectors; v++) {
                const int64_t i = p * a->channels + channel;
                vf y = v_mul(v_sub(column_load(a->x + i, v, valid), mean[v]), inv[v]);
                y = v_fma(y, gamma[v], beta[v]);
                if (f->addend) y = v_add(y, column_load(f->addend + i, v, valid));
                column_store(a->y + i, v, activated(activation, slope, y), valid);
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        column_store(a->mean + at, v, mean[v], valid);
        column_store(a->inv + at, v, inv[v], valid);
        column_store(f->var + at, v, var[v], valid);
    }
}

V_INLINE void forward_plain(const struct forward *f, const int vectors, int64_t channel, int64_t valid)
{
    forward_group(f, TR_ACT_NONE, vectors, channel, valid);
}

V_INLINE void forward_relu(const struct forward *f, const int vectors, int64_t channel, int64_t valid)
{
    forward_group(f, TR_ACT_RELU, vectors, channel, valid);
}

V_INLINE void forward_leaky(const struct forward *f, const int vectors, int64_t channel, int64_t valid)
{
    forward_group(f, TR_ACT_LEAKY_RELU, vectors, channel, valid);
}

static void forward_piece(const struct forward *f, struct piece piece)
{
    if (f->activation == TR_ACT_RELU)
        COLUMN_GROUPS(forward_relu, f, piece.channel, piece.end);
    else if (f->activation == TR_ACT_LEAKY_RELU)
        COLUMN_GROUPS(forward_leaky, f, piece.channel, piece.end);
    else
        COLUMN_GROUPS(forward_plain, f, piece.channel, piece.end);
}

/* The nodes of a group of channels. */
V_INLINE void statistics_group(const struct forward *f, const int vectors, int64_t channel, int64_t valid)
{
    const struct tr_op_batch_norm_forward *a = f->op;
    struct column_tree means, vars;
    column_tree_begin(&means);
    column_tree_begin(&vars);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            int64_t rows = a->cut.row[i + 1] - a->cut.row[i], n = rows * a->spatial,
                    at = i * a->channels + channel;
            vf share = v_set1((float)rows / (float)a->global_rows);
            vf unbiased = v_set1(n > 1 ? (float)n / (float)(n - 1) : 1.0f);
            vf mean[COLUMN_VECTORS], var[COLUMN_VECTORS];
            for (int v = 0; v < vectors; v++) {
                mean[v] = v_mul(share, column_load(a->mean + at, v, valid));
                var[v] = v_mul(share, v_mul(column_load(f->var + at, v, valid), unbiased));
            }
            column_tree_push(&means, vectors, mean);
            column_tree_push(&vars, vectors, var);
        }
        column_tree_finish(&means, vectors);
        column_tree_finish(&vars, vectors);
        int64_t at = node * a->cut.stride + channel;
        for (int v = 0; v < vectors; v++) {
            column_store(a->batch_mean + at, v, means.sum[0][v], valid);
            column_store(a->batch_var + at, v, vars.sum[0][v], valid);
        }
    }
}

static void batch_norm_forward_part(void *arguments, int member, int size)
{
    struct forward f = *(const struct forward *)arguments;
    const struct tr_op_batch_norm_forward *a = f.op;
    struct pieces pieces = pieces_of(a->cut.count, a->channels, member, size);
    for (int64_t i = pieces.end; i-- > pieces.begin;) {
        struct piece piece = piece_at(&pieces, i);
        f.microbatch = piece.microbatch;
        forward_piece(&f, piece);
    }
    cpu_barrier(f.cpu, member, size);
    int64_t begin, end;
    tr_team_share(a->channels, COLUMN_GRAIN, member, size, &begin, &end);
    COLUMN_GROUPS(statistics_group, &f, begin, end);
}

static tr_status run_forward(tr_device *device, struct forward f)
{
    const struct tr_op_batch_norm_forward *a = f.op;
    if (a->cut.count == 0) return TR_OK;
    f.cpu = cpu_device_of(device);
    TR_TRY(cpu_reserve(cpu_device_of(device), 0, (size_t)a->cut.count * (size_t)a->channels * sizeof(float)));
    f.var = cpu_shared(f.cpu);
    cpu_run_together(cpu_device_of(device), 4 * cost(&a->cut, a->spatial, a->channels),
                     batch_norm_forward_part, &f);
    return TR_OK;
}

tr_status CPU_KERNEL(batch_norm_forward)(tr_device *device, const struct tr_op_batch_norm_forward *a)
{
    return run_forward(device, (struct forward){.op = a});
}

tr_status CPU_KERNEL(batch_norm_activation_forward)(tr_device *device,
                                                    const struct tr_op_batch_norm_activation_forward *a)
{
    return run_forward(
        device, (struct forward){
                    .op = &a->norm, .addend = a->addend, .activation = a->activation, .slope = a->slope});
}

/* ---- backward ---- */

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

/* What of the gradient passes the activation, of vector v at element i. Without an addend the output's sign
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

/* The activation is known where this is expanded. */
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

static void backward_piece(const struct backward *b, struct piece piece)
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
        column_tree_finish(&gammas, vectors);
        column_tree_finish(&betas, vectors);
        int64_t at = node * a->cut.stride + channel;
        for (int v = 0; v < vectors; v++) {
            column_store(a->dgamma + at, v, gammas.sum[0][v], valid);
            column_store(a->dbeta + at, v, betas.sum[0][v], valid);
        }
    }
}

static void batch_norm_backward_part(void *arguments, int member, int size)
{
    struct backward b = *(const struct backward *)arguments;
    const struct tr_op_batch_norm_backward *a = b.op;
    struct pieces pieces = pieces_of(a->cut.count, a->channels, member, size);
    for (int64_t i = pieces.end; i-- > pieces.begin;) {
        struct piece piece = piece_at(&pieces, i);
        b.microbatch = piece.microbatch;
        backward_piece(&b, piece);
    }
    cpu_barrier(b.cpu, member, size);
    int64_t begin, end;
    tr_team_share(a->channels, COLUMN_GRAIN, member, size, &begin, &end);
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
    cpu_run_together(cpu_device_of(device), 4 * cost(&a->cut, a->spatial, a->channels),
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

/* ---- evaluation ---- */

struct infer {
    const struct tr_op_batch_norm_infer *op;
    int64_t begin, end; /* rows */
};

V_INLINE void infer_group(const struct infer *f, const int vectors, int64_t channel, int64_t valid)
{
    const struct tr_op_batch_norm_infer *a = f->op;
    vf mean[COLUMN_VECTORS], inv[COLUMN_VECTORS], gamma[COLUMN_VECTORS], beta[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) {
        mean[v] = column_load(a->mean + channel, v, valid);
        vf var = v_add(column_load(a->var + channel, v, valid), v_set1(a->epsilon));
        inv[v] = v_div(v_set1(1.0f), v_sqrt(var));
        gamma[v] = column_load(a->gamma + channel, v, valid);
        beta[v] = column_load(a->beta + channel, v, valid);
    }
    for (int64_t p = f->begin; p < f->end; p++) {
        for (int v = 0; v < vectors; v++) {
            vf d = v_sub(column_load(a->x + p * a->channels + channel, v, valid), mean[v]);
            column_store(a->y + p * a->channels + channel, v, v_fma(v_mul(d, inv[v]), gamma[v], beta[v]),
                         valid);
        }
    }
}

static void batch_norm_infer_part(void *arguments, int member, int size)
{
    const struct tr_op_batch_norm_infer *a = arguments;
    struct infer f = {.op = a};
    tr_team_share(a->rows, 16, member, size, &f.begin, &f.end);
    COLUMN_GROUPS(infer_group, &f, 0, a->channels);
}

tr_status CPU_KERNEL(batch_norm_infer)(tr_device *device, const struct tr_op_batch_norm_infer *a)
{
    double nanoseconds = (double)a->rows * (double)a->channels * NANOSECONDS_PER_ELEMENT;
    cpu_run(cpu_device_of(device), nanoseconds, batch_norm_infer_part, (void *)a);
    return TR_OK;
}
