/* Batch normalization forward: in training, and with running statistics. */
#include "base/fail.h"
#include "device/cpu/norm/batch_norm.h"

struct forward {
    const struct tr_op_batch_norm_forward *op;
    const float *addend; /* or NULL */
    enum tr_activation activation;
    float slope;
    const struct cpu_device *cpu;
    float *var;         /* [microbatches][channels] */
    int32_t microbatch; /* of the current piece; each member has a copy */
};

V_INLINE vf activated(const enum tr_activation activation, vf slope, vf x)
{
    if (activation == TR_ACT_RELU) return v_select(v_gt(v_zero(), x), v_zero(), x);
    if (activation == TR_ACT_LEAKY_RELU) return v_select(v_gt(v_zero(), x), v_mul(slope, x), x);
    return x;
}

/* The activation is a constant where this is inlined. */
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

static void forward_piece(const struct forward *f, struct batch_piece piece)
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
        const int64_t at = node * a->cut.stride + channel;
        column_tree_store(&means, vectors, a->batch_mean + at, valid);
        column_tree_store(&vars, vectors, a->batch_var + at, valid);
    }
}

static void batch_norm_forward_part(void *arguments, int member, int size)
{
    struct forward f = *(const struct forward *)arguments;
    const struct tr_op_batch_norm_forward *a = f.op;
    struct batch_pieces pieces = pieces_of(a->cut.count, a->channels, member, size);
    for (int64_t i = pieces.end; i-- > pieces.begin;) {
        struct batch_piece piece = piece_at(&pieces, i);
        f.microbatch = piece.microbatch;
        forward_piece(&f, piece);
    }
    cpu_barrier(f.cpu, member, size);
    int64_t begin, end;
    tr_team_chunk(a->channels, COLUMN_GRAIN, member, size, &begin, &end);
    COLUMN_GROUPS(statistics_group, &f, begin, end);
}

static tr_status run_forward(tr_device *device, struct forward f)
{
    const struct tr_op_batch_norm_forward *a = f.op;
    if (a->cut.count == 0) return TR_OK;
    f.cpu = cpu_device_of(device);
    TR_TRY(cpu_reserve(cpu_device_of(device), 0, (size_t)a->cut.count * (size_t)a->channels * sizeof(float)));
    f.var = cpu_shared(f.cpu);
    cpu_run_together(cpu_device_of(device), 4 * batch_norm_cost(&a->cut, a->spatial, a->channels),
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
    tr_team_chunk(a->rows, 16, member, size, &f.begin, &f.end);
    COLUMN_GROUPS(infer_group, &f, 0, a->channels);
}

tr_status CPU_KERNEL(batch_norm_infer)(tr_device *device, const struct tr_op_batch_norm_infer *a)
{
    double nanoseconds = (double)a->rows * (double)a->channels * NANOSECONDS_PER_ELEMENT;
    cpu_run(cpu_device_of(device), nanoseconds, batch_norm_infer_part, (void *)a);
    return TR_OK;
}
