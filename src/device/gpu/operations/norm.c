/* Normalization of rows and of channels. */
#include "device/gpu/gpu.h"
#include "device/gpu/lanes.h"
#include "device/gpu/operations/operations.h"

#include "base/fail.h"

/* ---- rows ---- */

tr_status gpu_layer_norm_forward(tr_device *device, const struct tr_op_layer_norm_forward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "layer_norm_forward");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_float(&call, a->epsilon);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->beta);
    gpu_array(&call, a->y);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    return gpu_run_lanes(&call, a->rows);
}

tr_status gpu_rms_norm_forward(tr_device *device, const struct tr_op_rms_norm_forward *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "rms_norm_forward");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_float(&call, a->epsilon);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->y);
    gpu_array(&call, a->inv);
    return gpu_run_lanes(&call, a->rows);
}

/* Operands of the gradients of scale and shift. */
struct scaled {
    int64_t spatial, width;
    bool per_row; /* statistics are per row, else per microbatch */
    const float *x, *mean, *inv, *dy;
    float *average;        /* or NULL */
    float *dgamma, *dbeta; /* dbeta: or NULL */
    const struct tr_cut *cut;
};

/* `scratch` has room for the leaves of dgamma and dbeta. */
static tr_status scale_gradients(tr_device *device, const struct scaled *s, float *scratch)
{
    struct gpu_cut cut;
    int64_t stride, leaves = s->cut->count * s->width;
    TR_TRY(gpu_cut(device, s->cut, &cut));
    float *gamma = gpu_leaves(s->cut, s->width, s->dgamma, scratch, &stride);
    float *beta = s->dbeta ? gpu_leaves(s->cut, s->width, s->dbeta, scratch + leaves, &stride) : NULL;
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "scale_gradient");
    gpu_size(&call, s->spatial);
    gpu_size(&call, s->width);
    gpu_int(&call, s->cut->count);
    gpu_int(&call, s->per_row);
    gpu_array(&call, cut.row);
    gpu_array(&call, s->x);
    gpu_array(&call, s->mean);
    gpu_array(&call, s->inv);
    gpu_array(&call, s->dy);
    gpu_long(&call, stride);
    gpu_array(&call, gamma);
    gpu_array(&call, beta);
    gpu_array(&call, s->average);
    TR_TRY(gpu_run(&call, gpu_groups(s->width, GPU_COLUMNS), s->cut->count, 1));
    TR_TRY(gpu_tree(device, s->cut, s->width, s->dgamma, gamma));
    return s->dbeta ? gpu_tree(device, s->cut, s->width, s->dbeta, beta) : TR_OK;
}

static int64_t cut_rows(const struct tr_cut *cut)
{
    return cut->count > 0 ? cut->row[cut->count] : 0;
}

tr_status gpu_layer_norm_backward(tr_device *device, const struct tr_op_layer_norm_backward *a)
{
    void *scratch;
    TR_TRY(gpu_scratch(device, 2 * (size_t)(a->cut.count * a->width) * sizeof(float), &scratch));
    if (a->dx) {
        struct gpu_call call;
        gpu_begin(&call, device, "norm", "", "layer_norm_backward");
        gpu_long(&call, cut_rows(&a->cut));
        gpu_size(&call, a->width);
        gpu_array(&call, a->x);
        gpu_array(&call, a->gamma);
        gpu_array(&call, a->mean);
        gpu_array(&call, a->inv);
        gpu_array(&call, a->dy);
        gpu_array(&call, a->dx);
        TR_TRY(gpu_run_lanes(&call, cut_rows(&a->cut)));
    }
    struct scaled scaled = {.spatial = 1,
                            .width = a->width,
                            .per_row = true,
                            .x = a->x,
                            .mean = a->mean,
                            .inv = a->inv,
                            .dy = a->dy,
                            .dgamma = a->dgamma,
                            .dbeta = a->dbeta,
                            .cut = &a->cut};
    return scale_gradients(device, &scaled, scratch);
}

tr_status gpu_rms_norm_backward(tr_device *device, const struct tr_op_rms_norm_backward *a)
{
    void *scratch;
    TR_TRY(gpu_scratch(device, (size_t)(a->cut.count * a->width) * sizeof(float), &scratch));
    if (a->dx) {
        struct gpu_call call;
        gpu_begin(&call, device, "norm", "", "rms_norm_backward");
        gpu_long(&call, cut_rows(&a->cut));
        gpu_size(&call, a->width);
        gpu_array(&call, a->x);
        gpu_array(&call, a->gamma);
        gpu_array(&call, a->inv);
        gpu_array(&call, a->dy);
        gpu_array(&call, a->dx);
        TR_TRY(gpu_run_lanes(&call, cut_rows(&a->cut)));
    }
    struct scaled scaled = {.spatial = 1,
                            .width = a->width,
                            .per_row = true,
                            .x = a->x,
                            .inv = a->inv,
                            .dy = a->dy,
                            .dgamma = a->dgamma,
                            .cut = &a->cut};
    return scale_gradients(device, &scaled, scratch);
}

/* ---- channels ---- */

/* The most places (rows * spatial) of a microbatch. */
static int64_t most_places(const struct tr_cut *cut, int64_t spatial)
{
    int64_t most = 0;
    for (int32_t i = 0; i < cut->count; i++) {
        int64_t rows = cut->row[i + 1] - cut->row[i];
        most = rows > most ? rows : most;
    }
    return most * spatial;
}

static tr_status channel_statistics(tr_device *device, const struct tr_op_batch_norm_forward *a,
                                    const int64_t *row, int64_t stride, float *mean_leaf, float *var_leaf)
{
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "channel_mean");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_array(&call, row);
    gpu_array(&call, a->x);
    gpu_array(&call, a->mean);
    TR_TRY(gpu_run(&call, gpu_groups(a->channels, GPU_COLUMNS), a->cut.count, 1));
    gpu_begin(&call, device, "norm", "", "channel_variance");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_long(&call, a->global_rows);
    gpu_float(&call, a->epsilon);
    gpu_array(&call, row);
    gpu_array(&call, a->x);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    gpu_long(&call, stride);
    gpu_array(&call, mean_leaf);
    gpu_array(&call, var_leaf);
    return gpu_run(&call, gpu_groups(a->channels, GPU_COLUMNS), a->cut.count, 1);
}

tr_status gpu_batch_norm_forward(tr_device *device, const struct tr_op_batch_norm_forward *a)
{
    struct gpu_cut cut;
    void *scratch;
    int64_t stride, leaves = a->cut.count * a->channels;
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    TR_TRY(gpu_scratch(device, 2 * (size_t)leaves * sizeof(float), &scratch));
    float *means = gpu_leaves(&a->cut, a->channels, a->batch_mean, scratch, &stride);
    float *vars = gpu_leaves(&a->cut, a->channels, a->batch_var, (float *)scratch + leaves, &stride);
    TR_TRY(channel_statistics(device, a, cut.row, stride, means, vars));
    int shift = gpu_shift(device, a->channels);
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "batch_norm_forward");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_int(&call, shift);
    gpu_array(&call, cut.row);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->beta);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    gpu_array(&call, a->y);
    TR_TRY(gpu_run_channels(&call, shift, a->channels, most_places(&a->cut, a->spatial), a->cut.count));
    TR_TRY(gpu_tree(device, &a->cut, a->channels, a->batch_mean, means));
    return gpu_tree(device, &a->cut, a->channels, a->batch_var, vars);
}

tr_status gpu_batch_norm_backward(tr_device *device, const struct tr_op_batch_norm_backward *a)
{
    struct gpu_cut cut;
    void *scratch;
    int64_t leaves = a->cut.count * a->channels;
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    TR_TRY(gpu_scratch(device, 4 * (size_t)leaves * sizeof(float), &scratch));
    float *average = a->dx ? (float *)scratch + 2 * leaves : NULL;
    struct scaled scaled = {.spatial = a->spatial,
                            .width = a->channels,
                            .x = a->x,
                            .mean = a->mean,
                            .inv = a->inv,
                            .dy = a->dy,
                            .average = average,
                            .dgamma = a->dgamma,
                            .dbeta = a->dbeta,
                            .cut = &a->cut};
    TR_TRY(scale_gradients(device, &scaled, scratch));
    if (!a->dx) return TR_OK;
    int shift = gpu_shift(device, a->channels);
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "batch_norm_backward");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_int(&call, a->cut.count);
    gpu_int(&call, shift);
    gpu_array(&call, cut.row);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    gpu_array(&call, average);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->dx);
    return gpu_run_channels(&call, shift, a->channels, most_places(&a->cut, a->spatial), a->cut.count);
}

tr_status gpu_batch_norm_infer(tr_device *device, const struct tr_op_batch_norm_infer *a)
{
    int shift = gpu_shift(device, a->channels);
    struct gpu_call call;
    gpu_begin(&call, device, "norm", "", "batch_norm_infer");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->channels);
    gpu_int(&call, shift);
    gpu_float(&call, a->epsilon);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->beta);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->var);
    gpu_array(&call, a->y);
    return gpu_run_channels(&call, shift, a->channels, a->rows, 1);
}
