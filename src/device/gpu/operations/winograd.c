/* Winograd convolutions: transforms, and the products of the 36 positions, all at once. */
#include "device/gpu/operations/operations.h"
#include "device/gpu/product.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/winograd.h"

#define SOURCE    "winograd_conv"
#define POSITIONS TR_WINOGRAD_POSITIONS

static int64_t tiles_of(const struct tr_sliding_window *w)
{
    return (int64_t)tr_winograd_tiles(w->kernel_h, w->out_h) * tr_winograd_tiles(w->kernel_w, w->out_w);
}

/* V of `all` tiles. */
static tr_status transform_input(tr_device *device, const struct tr_sliding_window *w, int64_t all,
                                 int32_t channels, const float *x, float *v)
{
    struct gpu_call call;
    gpu_begin(&call, device, SOURCE, "", "winograd_input");
    gpu_int(&call, w->kernel_h);
    gpu_long(&call, all);
    gpu_int(&call, channels);
    gpu_int(&call, w->in_h);
    gpu_int(&call, w->in_w);
    gpu_int(&call, w->out_h);
    gpu_int(&call, w->out_w);
    gpu_int(&call, w->pad_top);
    gpu_int(&call, w->pad_left);
    gpu_array(&call, x);
    gpu_array(&call, v);
    return gpu_run_each(&call, all * channels);
}

/* Z of `all` tiles. */
static tr_status transform_gradient(tr_device *device, const struct tr_sliding_window *w, int64_t all,
                                    int32_t channels, const float *dy, float *z)
{
    struct gpu_call call;
    gpu_begin(&call, device, SOURCE, "", "winograd_gradient");
    gpu_int(&call, w->kernel_h);
    gpu_long(&call, all);
    gpu_int(&call, channels);
    gpu_int(&call, w->out_h);
    gpu_int(&call, w->out_w);
    gpu_array(&call, dy);
    gpu_array(&call, z);
    return gpu_run_each(&call, all * channels);
}

static tr_status transform_weights(tr_device *device, int32_t taps, int64_t pairs, const float *w, float *u)
{
    struct gpu_call call;
    gpu_begin(&call, device, SOURCE, "", "winograd_weights");
    gpu_int(&call, taps);
    gpu_long(&call, pairs);
    gpu_array(&call, w);
    gpu_array(&call, u);
    return gpu_run_each(&call, pairs);
}

/* Per position, c [m][n] = a [m][k] * b; each position's matrices follow the last one's. */
static tr_status multiply(tr_device *device, struct gpu_product *product, int64_t a, int64_t b, int64_t c)
{
    product->addressing = GPU_STRIDES;
    product->sets = 1;
    product->batches = POSITIONS;
    product->a_batch = a;
    product->b_batch = b;
    product->c_batch = c;
    return gpu_product_run(device, product);
}

tr_status gpu_winograd_forward(tr_device *device, const struct tr_op_winograd_forward *arguments)
{
    const struct tr_op_conv_forward *a = &arguments->conv;
    const int64_t all = a->rows * tiles_of(&a->window), pairs = (int64_t)a->in_c * a->out_c;
    void *scratch;
    if (all == 0) return TR_OK;
    TR_TRY(gpu_scratch(device, (size_t)(POSITIONS * (pairs + all * (a->in_c + a->out_c))) * sizeof(float),
                       &scratch));
    float *u = scratch, *v = u + POSITIONS * pairs, *m = v + POSITIONS * all * a->in_c;
    TR_TRY(transform_weights(device, a->window.kernel_h, pairs, a->w, u));
    TR_TRY(transform_input(device, &a->window, all, a->in_c, a->x, v));
    struct gpu_product product = {.a_k = true,
                                  .m = all,
                                  .n = a->out_c,
                                  .k = a->in_c,
                                  .leaves = 1,
                                  .a = v,
                                  .b = u,
                                  .c = m,
                                  .a_m = a->in_c,
                                  .a_k_step = 1,
                                  .b_k_step = a->out_c,
                                  .b_n = 1,
                                  .c_m = a->out_c};
    TR_TRY(multiply(device, &product, all * a->in_c, pairs, all * a->out_c));
    struct gpu_call call;
    gpu_begin(&call, device, SOURCE, "", "winograd_output");
    gpu_int(&call, a->window.kernel_h);
    gpu_long(&call, all);
    gpu_int(&call, a->out_c);
    gpu_int(&call, a->window.out_h);
    gpu_int(&call, a->window.out_w);
    gpu_array(&call, m);
    gpu_array(&call, a->b);
    gpu_int(&call, (int32_t)a->activation);
    gpu_float(&call, a->slope);
    gpu_array(&call, a->y);
    return gpu_run_each(&call, all * a->out_c);
}

tr_status gpu_winograd_backward_data(tr_device *device, const struct tr_op_winograd_backward_data *arguments)
{
    const struct tr_op_conv_backward_data *a = &arguments->conv;
    const struct tr_sliding_window *w = &a->window;
    const int64_t all = a->rows * tiles_of(w), pairs = (int64_t)a->in_c * a->out_c;
    void *scratch;
    if (all == 0) return TR_OK;
    TR_TRY(gpu_scratch(device, (size_t)(POSITIONS * (pairs + all * (a->in_c + a->out_c))) * sizeof(float),
                       &scratch));
    float *u = scratch, *z = u + POSITIONS * pairs, *d = z + POSITIONS * all * a->out_c;
    TR_TRY(transform_weights(device, a->window.kernel_h, pairs, a->w, u));
    TR_TRY(transform_gradient(device, w, all, a->out_c, a->dy, z));
    struct gpu_product product = {.a_k = true,
                                  .b_k = true,
                                  .m = all,
                                  .n = a->in_c,
                                  .k = a->out_c,
                                  .leaves = 1,
                                  .a = z,
                                  .b = u,
                                  .c = d,
                                  .a_m = a->out_c,
                                  .a_k_step = 1,
                                  .b_k_step = 1,
                                  .b_n = a->out_c,
                                  .c_m = a->in_c};
    TR_TRY(multiply(device, &product, all * a->out_c, pairs, all * a->in_c));
    struct gpu_call call;
    gpu_begin(&call, device, SOURCE, "", "winograd_input_adjoint");
    gpu_int(&call, w->kernel_h);
    gpu_long(&call, all);
    gpu_int(&call, a->in_c);
    gpu_int(&call, w->out_h);
    gpu_int(&call, w->out_w);
    gpu_array(&call, d);
    TR_TRY(gpu_run_each(&call, all * a->in_c));
    const int64_t count = a->rows * w->in_h * w->in_w * a->in_c;
    gpu_begin(&call, device, SOURCE, "", "winograd_gather");
    gpu_int(&call, w->kernel_h);
    gpu_long(&call, count);
    gpu_long(&call, all);
    gpu_int(&call, a->in_c);
    gpu_int(&call, w->in_h);
    gpu_int(&call, w->in_w);
    gpu_int(&call, w->out_h);
    gpu_int(&call, w->out_w);
    gpu_int(&call, w->pad_top);
    gpu_int(&call, w->pad_left);
    gpu_array(&call, d);
    gpu_array(&call, a->dx);
    return gpu_run_each(&call, count);
}

/* The rows of a cut as tiles, on the device. */
static tr_status tiles_of_cut(tr_device *device, const struct tr_cut *cut, int64_t tiles, const int64_t **out)
{
    const size_t bytes = (size_t)(cut->count + 1) * sizeof **out;
    const void *table = NULL;
    int64_t *row = tr_alloc(bytes, 1);
    if (!row) return TR_ENOMEM;
    for (int32_t i = 0; i <= cut->count; i++) row[i] = cut->row[i] * tiles;
    tr_status status = gpu_table(device, row, bytes, &table);
    tr_free(row);
    *out = table;
    return status;
}

tr_status gpu_winograd_backward_weights(tr_device *device,
                                        const struct tr_op_winograd_backward_weights *arguments)
{
    const struct tr_op_conv_backward_weights *a = &arguments->conv;
    const struct tr_sliding_window *w = &a->window;
    if (a->cut.nodes == 0) return TR_OK;
    const int64_t tiles = tiles_of(w), all = a->cut.row[a->cut.count] * tiles, leaves = a->cut.count;
    const int64_t pairs = (int64_t)a->in_c * a->out_c, size = w->kernel_h * w->kernel_w * pairs;
    const int64_t floats = POSITIONS * (all * (a->in_c + a->out_c) + leaves * pairs) + leaves * size;
    const int64_t *row;
    void *scratch;
    int64_t stride;
    TR_TRY(tiles_of_cut(device, &a->cut, tiles, &row));
    TR_TRY(gpu_scratch(device, (size_t)floats * sizeof(float), &scratch));
    float *v = scratch, *z = v + POSITIONS * all * a->in_c, *s = z + POSITIONS * all * a->out_c;
    float *room = s + leaves * POSITIONS * pairs, *dw = gpu_leaves(&a->cut, size, a->dw, room, &stride);
    TR_TRY(transform_input(device, w, all, a->in_c, a->x, v));
    TR_TRY(transform_gradient(device, w, all, a->out_c, a->dy, z));
    struct gpu_product product = {.m = a->in_c,
                                  .n = a->out_c,
                                  .leaves = leaves,
                                  .row = row,
                                  .a = v,
                                  .b = z,
                                  .c = s,
                                  .c_leaf = POSITIONS * pairs,
                                  .a_m = 1,
                                  .a_k_step = a->in_c,
                                  .b_k_step = a->out_c,
                                  .b_n = 1,
                                  .c_m = a->out_c};
    TR_TRY(multiply(device, &product, all * a->in_c, all * a->out_c, pairs));
    struct gpu_call call;
    gpu_begin(&call, device, SOURCE, "", "winograd_sums");
    gpu_int(&call, w->kernel_h);
    gpu_long(&call, pairs);
    gpu_array(&call, s);
    gpu_long(&call, stride);
    gpu_array(&call, dw);
    TR_TRY(gpu_run(&call, gpu_groups(pairs, gpu_threads(device)), leaves, 1));
    TR_TRY(gpu_tree(device, &a->cut, size, a->dw, dw));
    if (!a->db) return TR_OK;
    return gpu_sum_columns(device, &a->cut, (int64_t)w->out_h * w->out_w, a->out_c, a->dy, a->db, room);
}
