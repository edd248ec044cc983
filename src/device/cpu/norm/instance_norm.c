/* Group normalization where each channel is a group: several vectors of channels at once. A sum over the
 * channels of a group is here the channel's own chain.
 */
#include "device/cpu/norm/instance_norm.h"

#include "device/cpu/vectors/columns.h"

struct forward {
    const struct tr_op_group_norm_forward *op;
    int64_t row;
};

/* The channels of a group of columns. */
V_INLINE void normalize(const struct forward *f, const int vectors, int64_t column, int64_t columns)
{
    const struct tr_op_group_norm_forward *a = f->op;
    const int64_t size = a->spatial * a->channels, first = f->row * size + column;
    const vf count = v_set1((float)a->spatial), one = v_set1(1.0f), epsilon = v_set1(a->epsilon);
    vf mean[COLUMN_VECTORS], inv[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) mean[v] = inv[v] = v_zero();
    for (int64_t p = first; p < first + size; p += a->channels)
        for (int v = 0; v < vectors; v++) mean[v] = v_add(mean[v], column_load(a->x + p, v, columns));
    for (int v = 0; v < vectors; v++) mean[v] = v_div(mean[v], count);
    for (int64_t p = first; p < first + size; p += a->channels)
        for (int v = 0; v < vectors; v++) {
            const vf d = v_sub(column_load(a->x + p, v, columns), mean[v]);
            inv[v] = v_fma(d, d, inv[v]);
        }
    for (int v = 0; v < vectors; v++) inv[v] = v_div(one, v_sqrt(v_add(v_div(inv[v], count), epsilon)));
    for (int64_t p = first; p < first + size; p += a->channels)
        for (int v = 0; v < vectors; v++) {
            const vf xhat = v_mul(v_sub(column_load(a->x + p, v, columns), mean[v]), inv[v]);
            column_store(a->y + p, v,
                         v_fma(xhat, column_load(a->gamma + column, v, columns),
                               column_load(a->beta + column, v, columns)),
                         columns);
        }
    for (int v = 0; v < vectors; v++) {
        column_store(a->mean + f->row * a->channels + column, v, mean[v], columns);
        column_store(a->inv + f->row * a->channels + column, v, inv[v], columns);
    }
}

void instance_norm_forward(const struct tr_op_group_norm_forward *a, int64_t r)
{
    const struct forward f = {a, r};
    COLUMN_GROUPS(normalize, &f, 0, a->channels);
}

struct backward {
    const struct tr_op_group_norm_backward *op;
    int64_t row;
};

V_INLINE void carry_back(const struct backward *b, const int vectors, int64_t column, int64_t columns)
{
    const struct tr_op_group_norm_backward *a = b->op;
    const int64_t size = a->spatial * a->channels, first = b->row * size + column;
    const float *means = a->mean + b->row * a->channels + column,
                *invs = a->inv + b->row * a->channels + column;
    const vf count = v_set1((float)a->spatial);
    vf sum[COLUMN_VECTORS], product[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) sum[v] = product[v] = v_zero();
    for (int64_t p = first; p < first + size; p += a->channels)
        for (int v = 0; v < vectors; v++) {
            const vf d = column_load(a->dy + p, v, columns);
            const vf xhat = v_mul(v_sub(column_load(a->x + p, v, columns), column_load(means, v, columns)),
                                  column_load(invs, v, columns));
            sum[v] = v_add(sum[v], d);
            product[v] = v_fma(d, xhat, product[v]);
        }
    for (int v = 0; v < vectors; v++) {
        const vf gamma = column_load(a->gamma + column, v, columns);
        sum[v] = v_div(v_fma(gamma, sum[v], v_zero()), count);
        product[v] = v_div(v_fma(gamma, product[v], v_zero()), count);
    }
    for (int64_t p = first; p < first + size; p += a->channels)
        for (int v = 0; v < vectors; v++) {
            const vf inv = column_load(invs, v, columns);
            const vf d =
                v_mul(column_load(a->dy + p, v, columns), column_load(a->gamma + column, v, columns));
            const vf xhat =
                v_mul(v_sub(column_load(a->x + p, v, columns), column_load(means, v, columns)), inv);
            column_store(a->dx + p, v, v_mul(inv, v_fnma(xhat, product[v], v_sub(d, sum[v]))), columns);
        }
}

void instance_norm_backward(const struct tr_op_group_norm_backward *a, int64_t r)
{
    const struct backward b = {a, r};
    COLUMN_GROUPS(carry_back, &b, 0, a->channels);
}
