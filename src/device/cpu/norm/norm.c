/* Layer and root mean square normalization: rows by lanes, gradients of the parameters by columns. */
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"

#include <math.h>

#define NANOSECONDS_PER_ROW     60.0
#define NANOSECONDS_PER_ELEMENT (6.0 / VW)

static double cost(int64_t rows, int64_t width)
{
    return (double)rows * (NANOSECONDS_PER_ROW + (double)width * NANOSECONDS_PER_ELEMENT);
}

static void layer_norm_row(const struct tr_op_layer_norm_forward *a, int64_t r)
{
    int64_t width = a->width;
    const float *x = a->x + r * width;
    float *y = a->y + r * width;
    struct lanes sums = lanes_set1(0), squares = lanes_set1(0);
    for (int64_t k = 0; k < width; k += LANES) sums = lanes_add(sums, lanes_load(x + k, width - k));
    a->mean[r] = lanes_total(sums) / (float)width;
    struct lanes mean = lanes_set1(a->mean[r]);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes d = lanes_keep(lanes_sub(lanes_load(x + k, width - k), mean), width - k);
        squares = lanes_fma(d, d, squares);
    }
    a->inv[r] = 1 / sqrtf(lanes_total(squares) / (float)width + a->epsilon);
    struct lanes inv = lanes_set1(a->inv[r]);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes d = lanes_sub(lanes_load(x + k, width - k), mean);
        struct lanes gamma = lanes_load(a->gamma + k, width - k), beta = lanes_load(a->beta + k, width - k);
        lanes_store(y + k, lanes_fma(lanes_mul(d, inv), gamma, beta), width - k);
    }
}

static void layer_norm_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_layer_norm_forward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++) layer_norm_row(a, r);
}

tr_status CPU_KERNEL(layer_norm_forward)(tr_device *device, const struct tr_op_layer_norm_forward *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->width), layer_norm_forward_part, (void *)a);
    return TR_OK;
}

static void layer_norm_backward_row(const struct tr_op_layer_norm_backward *a, int64_t r)
{
    int64_t width = a->width;
    const float *x = a->x + r * width, *dy = a->dy + r * width;
    float *dx = a->dx + r * width;
    struct lanes mean = lanes_set1(a->mean[r]), inv = lanes_set1(a->inv[r]);
    struct lanes sums = lanes_set1(0), products = lanes_set1(0);
    for (int64_t k = 0; k < width; k += LANES) {
        /* g is +0 past the end, and so is its product, unless xhat is not finite there. */
        struct lanes g = lanes_mul(lanes_load(dy + k, width - k), lanes_load(a->gamma + k, width - k));
        struct lanes xhat = lanes_mul(lanes_sub(lanes_load(x + k, width - k), mean), inv);
        sums = lanes_add(sums, g);
        products = lanes_fma(g, lanes_keep(xhat, width - k), products);
    }
    struct lanes mean_g = lanes_set1(lanes_total(sums) / (float)width);
    struct lanes mean_product = lanes_set1(lanes_total(products) / (float)width);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes g = lanes_mul(lanes_load(dy + k, width - k), lanes_load(a->gamma + k, width - k));
        struct lanes xhat = lanes_mul(lanes_sub(lanes_load(x + k, width - k), mean), inv);
        lanes_store(dx + k, lanes_mul(inv, lanes_fnma(xhat, mean_product, lanes_sub(g, mean_g))), width - k);
    }
}

/* dgamma and dbeta of a group of columns, all nodes. */
V_INLINE void layer_norm_columns(const struct tr_op_layer_norm_backward *a, const int vectors, int64_t column,
                                 int64_t columns)
{
    struct column_tree gammas, betas;
    column_tree_begin(&gammas);
    column_tree_begin(&betas);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            vf gamma[COLUMN_VECTORS], beta[COLUMN_VECTORS];
            for (int v = 0; v < vectors; v++) gamma[v] = beta[v] = v_zero();
            for (int64_t r = a->cut.row[i]; r < a->cut.row[i + 1]; r++) {
                const float *x = a->x + r * a->width + column, *dy = a->dy + r * a->width + column;
                vf mean = v_set1(a->mean[r]), inv = v_set1(a->inv[r]);
                for (int v = 0; v < vectors; v++) {
                    vf d = column_load(dy, v, columns);
                    gamma[v] = v_fma(d, v_mul(v_sub(column_load(x, v, columns), mean), inv), gamma[v]);
                    beta[v] = v_add(beta[v], d);
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

static void layer_norm_backward_part(void *arguments, int member, int size)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->cut.row[a->cut.count], 1, member, size, &begin, &end);
    for (int64_t r = begin; a->dx && r < end; r++) layer_norm_backward_row(a, r);
    tr_team_chunk(a->width, COLUMN_GRAIN, member, size, &begin, &end);
    COLUMN_GROUPS(layer_norm_columns, a, begin, end);
}

tr_status CPU_KERNEL(layer_norm_backward)(tr_device *device, const struct tr_op_layer_norm_backward *a)
{
    if (a->cut.count == 0) return TR_OK;
    double nanoseconds = 2 * cost(a->cut.row[a->cut.count], a->width);
    cpu_run(cpu_device_of(device), nanoseconds, layer_norm_backward_part, (void *)a);
    return TR_OK;
}

/* ---- root mean square ---- */

static void rms_norm_row(const struct tr_op_rms_norm_forward *a, int64_t r)
{
    int64_t width = a->width;
    const float *x = a->x + r * width;
    float *y = a->y + r * width;
    struct lanes squares = lanes_set1(0);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes value = lanes_load(x + k, width - k);
        squares = lanes_fma(value, value, squares);
    }
    a->inv[r] = 1 / sqrtf(lanes_total(squares) / (float)width + a->epsilon);
    struct lanes inv = lanes_set1(a->inv[r]);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes xhat = lanes_mul(lanes_load(x + k, width - k), inv);
        lanes_store(y + k, lanes_mul(xhat, lanes_load(a->gamma + k, width - k)), width - k);
    }
}

static void rms_norm_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_rms_norm_forward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++) rms_norm_row(a, r);
}

tr_status CPU_KERNEL(rms_norm_forward)(tr_device *device, const struct tr_op_rms_norm_forward *a)
{
    cpu_run(cpu_device_of(device), cost(a->rows, a->width), rms_norm_forward_part, (void *)a);
    return TR_OK;
}

static void rms_norm_backward_row(const struct tr_op_rms_norm_backward *a, int64_t r)
{
    int64_t width = a->width;
    const float *x = a->x + r * width, *dy = a->dy + r * width;
    float *dx = a->dx + r * width;
    struct lanes inv = lanes_set1(a->inv[r]), products = lanes_set1(0);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes g = lanes_mul(lanes_load(dy + k, width - k), lanes_load(a->gamma + k, width - k));
        struct lanes xhat = lanes_mul(lanes_load(x + k, width - k), inv);
        products = lanes_fma(g, lanes_keep(xhat, width - k), products);
    }
    struct lanes mean = lanes_set1(lanes_total(products) / (float)width);
    for (int64_t k = 0; k < width; k += LANES) {
        struct lanes g = lanes_mul(lanes_load(dy + k, width - k), lanes_load(a->gamma + k, width - k));
        struct lanes xhat = lanes_mul(lanes_load(x + k, width - k), inv);
        lanes_store(dx + k, lanes_mul(inv, lanes_fnma(xhat, mean, g)), width - k);
    }
}

/* dgamma of a group of columns, all nodes. */
V_INLINE void rms_norm_columns(const struct tr_op_rms_norm_backward *a, const int vectors, int64_t column,
                               int64_t columns)
{
    struct column_tree gammas;
    column_tree_begin(&gammas);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            vf gamma[COLUMN_VECTORS];
            for (int v = 0; v < vectors; v++) gamma[v] = v_zero();
            for (int64_t r = a->cut.row[i]; r < a->cut.row[i + 1]; r++) {
                const float *x = a->x + r * a->width + column, *dy = a->dy + r * a->width + column;
                vf inv = v_set1(a->inv[r]);
                for (int v = 0; v < vectors; v++)
                    gamma[v] =
                        v_fma(column_load(dy, v, columns), v_mul(column_load(x, v, columns), inv), gamma[v]);
            }
            column_tree_push(&gammas, vectors, gamma);
        }
        column_tree_store(&gammas, vectors, a->dgamma + node * a->cut.stride + column, columns);
    }
}

static void rms_norm_backward_part(void *arguments, int member, int size)
{
    const struct tr_op_rms_norm_backward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->cut.row[a->cut.count], 1, member, size, &begin, &end);
    for (int64_t r = begin; a->dx && r < end; r++) rms_norm_backward_row(a, r);
    tr_team_chunk(a->width, COLUMN_GRAIN, member, size, &begin, &end);
    COLUMN_GROUPS(rms_norm_columns, a, begin, end);
}

tr_status CPU_KERNEL(rms_norm_backward)(tr_device *device, const struct tr_op_rms_norm_backward *a)
{
    if (a->cut.count == 0) return TR_OK;
    double nanoseconds = 2 * cost(a->cut.row[a->cut.count], a->width);
    cpu_run(cpu_device_of(device), nanoseconds, rms_norm_backward_part, (void *)a);
    return TR_OK;
}
