/* Group normalization: up to 16 channels of a group at once, each with a separate chain. */
#include "device/cpu/norm/instance_norm.h"
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"

#include <math.h>

#define NANOSECONDS_PER_GROUP   60.0
#define NANOSECONDS_PER_ELEMENT (6.0 / VW)

static double cost(int64_t rows, int64_t groups, int64_t elements)
{
    return (double)rows *
           ((double)groups * NANOSECONDS_PER_GROUP + (double)elements * NANOSECONDS_PER_ELEMENT);
}

/* Adds the first n channels to a sum, a chain over channels, weighed by gamma unless that is NULL. */
static float go_on(float sum, struct lanes channel, const float *gamma, int64_t n)
{
    float own[LANES];
    lanes_store(own, channel, LANES);
    for (int64_t c = 0; c < n && c < LANES; c++) sum = gamma ? fmaf(gamma[c], own[c], sum) : sum + own[c];
    return sum;
}

static void group_norm_group(const struct tr_op_group_norm_forward *a, int64_t r, int64_t g)
{
    const int64_t width = a->channels / a->groups, size = a->spatial * a->channels, first = g * width;
    const float *x = a->x + r * size + first, n = (float)(a->spatial * width);
    float *y = a->y + r * size + first, sum = 0, squares = 0;
    for (int64_t c = 0; c < width; c += LANES) {
        struct lanes own = lanes_set1(0);
        for (int64_t p = 0; p < size; p += a->channels)
            own = lanes_add(own, lanes_load(x + p + c, width - c));
        sum = go_on(sum, own, NULL, width - c);
    }
    const struct lanes mean = lanes_set1(sum / n);
    for (int64_t c = 0; c < width; c += LANES) {
        struct lanes own = lanes_set1(0);
        for (int64_t p = 0; p < size; p += a->channels) {
            const struct lanes d = lanes_sub(lanes_load(x + p + c, width - c), mean);
            own = lanes_fma(d, d, own);
        }
        squares = go_on(squares, own, NULL, width - c);
    }
    a->mean[r * a->groups + g] = sum / n;
    a->inv[r * a->groups + g] = 1 / sqrtf(squares / n + a->epsilon);
    const struct lanes inv = lanes_set1(a->inv[r * a->groups + g]);
    for (int64_t c = 0; c < width; c += LANES) {
        const struct lanes gamma = lanes_load(a->gamma + first + c, width - c);
        const struct lanes beta = lanes_load(a->beta + first + c, width - c);
        for (int64_t p = 0; p < size; p += a->channels) {
            const struct lanes d = lanes_sub(lanes_load(x + p + c, width - c), mean);
            lanes_store(y + p + c, lanes_fma(lanes_mul(d, inv), gamma, beta), width - c);
        }
    }
}

static void group_norm_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_group_norm_forward *a = arguments;
    int64_t begin, end;
    if (a->groups == a->channels) {
        tr_team_chunk(a->rows, 1, member, size, &begin, &end);
        for (int64_t r = begin; r < end; r++) instance_norm_forward(a, r);
        return;
    }
    tr_team_chunk(a->rows * a->groups, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) group_norm_group(a, i / a->groups, i % a->groups);
}

tr_status CPU_KERNEL(group_norm_forward)(tr_device *device, const struct tr_op_group_norm_forward *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->groups, a->spatial * a->channels),
            group_norm_forward_part, (void *)a);
    return TR_OK;
}

static void group_norm_backward_group(const struct tr_op_group_norm_backward *a, int64_t r, int64_t g)
{
    const int64_t width = a->channels / a->groups, size = a->spatial * a->channels, first = g * width;
    const float *x = a->x + r * size + first, *dy = a->dy + r * size + first;
    const float n = (float)(a->spatial * width);
    const struct lanes mean = lanes_set1(a->mean[r * a->groups + g]);
    const struct lanes inv = lanes_set1(a->inv[r * a->groups + g]);
    float *dx = a->dx + r * size + first, sum = 0, product = 0;
    for (int64_t c = 0; c < width; c += LANES) {
        struct lanes sums = lanes_set1(0), products = lanes_set1(0);
        for (int64_t p = 0; p < size; p += a->channels) {
            const struct lanes d = lanes_load(dy + p + c, width - c);
            sums = lanes_add(sums, d);
            products =
                lanes_fma(d, lanes_mul(lanes_sub(lanes_load(x + p + c, width - c), mean), inv), products);
        }
        sum = go_on(sum, sums, a->gamma + first + c, width - c);
        product = go_on(product, products, a->gamma + first + c, width - c);
    }
    const struct lanes mean_g = lanes_set1(sum / n), mean_product = lanes_set1(product / n);
    for (int64_t c = 0; c < width; c += LANES) {
        const struct lanes gamma = lanes_load(a->gamma + first + c, width - c);
        for (int64_t p = 0; p < size; p += a->channels) {
            const struct lanes d = lanes_mul(lanes_load(dy + p + c, width - c), gamma);
            const struct lanes xhat = lanes_mul(lanes_sub(lanes_load(x + p + c, width - c), mean), inv);
            lanes_store(dx + p + c, lanes_mul(inv, lanes_fnma(xhat, mean_product, lanes_sub(d, mean_g))),
                        width - c);
        }
    }
}

/* The factors that normalize the columns of a group of vectors, which may belong to several groups of
   channels. */
struct column_statistics {
    float mean[COLUMN_GROUP], inv[COLUMN_GROUP];
};

static void take_statistics(const struct tr_op_group_norm_backward *a, int64_t r, int64_t column,
                            int64_t columns, struct column_statistics *out)
{
    const int64_t width = a->channels / a->groups;
    for (int64_t c = 0; c < columns && c < COLUMN_GROUP; c++) {
        const int64_t at = r * a->groups + (column + c) / width;
        out->mean[c] = a->mean[at];
        out->inv[c] = a->inv[at];
    }
}

/* dgamma and dbeta of a group of columns, all nodes. */
V_INLINE void group_norm_columns(const struct tr_op_group_norm_backward *a, const int vectors, int64_t column,
                                 int64_t columns)
{
    const int64_t size = a->spatial * a->channels;
    struct column_statistics of = {{0}, {0}};
    struct column_tree gammas, betas;
    column_tree_begin(&gammas);
    column_tree_begin(&betas);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            vf gamma[COLUMN_VECTORS], beta[COLUMN_VECTORS];
            for (int v = 0; v < vectors; v++) gamma[v] = beta[v] = v_zero();
            for (int64_t r = a->cut.row[i]; r < a->cut.row[i + 1]; r++) {
                vf product[COLUMN_VECTORS], sum[COLUMN_VECTORS];
                take_statistics(a, r, column, columns, &of);
                for (int v = 0; v < vectors; v++) product[v] = sum[v] = v_zero();
                for (int64_t p = r * size + column; p < (r + 1) * size; p += a->channels)
                    for (int v = 0; v < vectors; v++) {
                        const vf d = column_load(a->dy + p, v, columns);
                        const vf mean = v_load(of.mean + v * VW), inv = v_load(of.inv + v * VW);
                        const vf xhat = v_mul(v_sub(column_load(a->x + p, v, columns), mean), inv);
                        product[v] = v_fma(d, xhat, product[v]);
                        sum[v] = v_add(sum[v], d);
                    }
                for (int v = 0; v < vectors; v++) {
                    gamma[v] = v_add(gamma[v], product[v]);
                    beta[v] = v_add(beta[v], sum[v]);
                }
            }
            column_tree_push(&gammas, vectors, gamma);
            column_tree_push(&betas, vectors, beta);
        }
        const int64_t at = node * a->cut.stride + column;
        column_tree_store(&gammas, vectors, a->dgamma + at, columns);
        column_tree_store(&betas, vectors, a->dbeta + at, columns);
    }
}

static void group_norm_backward_part(void *arguments, int member, int size)
{
    const struct tr_op_group_norm_backward *a = arguments;
    int64_t begin, end;
    if (a->groups == a->channels) {
        tr_team_chunk(a->cut.row[a->cut.count], 1, member, size, &begin, &end);
        for (int64_t r = begin; a->dx && r < end; r++) instance_norm_backward(a, r);
    } else {
        tr_team_chunk(a->cut.row[a->cut.count] * a->groups, 1, member, size, &begin, &end);
        for (int64_t i = begin; a->dx && i < end; i++)
            group_norm_backward_group(a, i / a->groups, i % a->groups);
    }
    tr_team_chunk(a->channels, COLUMN_GRAIN, member, size, &begin, &end);
    COLUMN_GROUPS(group_norm_columns, a, begin, end);
}

tr_status CPU_KERNEL(group_norm_backward)(tr_device *device, const struct tr_op_group_norm_backward *a)
{
    if (a->cut.count == 0) return TR_OK;
    cpu_run(cpu_device_of(device), 2 * cost(a->cut.row[a->cut.count], a->groups, a->spatial * a->channels),
            group_norm_backward_part, (void *)a);
    return TR_OK;
}
