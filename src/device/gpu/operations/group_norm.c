/* Normalization of groups of channels. */
#include "device/gpu/gpu.h"
#include "device/gpu/lanes.h"
#include "device/gpu/operations/operations.h"
#include "device/gpu/product.h"

#include "base/fail.h"

/* The mean over groups of the values summed in `sums` [rows][channels], or 1 / sqrt(mean + epsilon) where
   `inverse`. */
static tr_status mean_of_groups(tr_device *device, const struct tr_op_group_norm_forward *a,
                                const float *sums, bool inverse, float *out)
{
    const int64_t width = a->channels / a->groups, lines = a->rows * a->groups;
    struct gpu_call call;
    gpu_begin(&call, device, "group_norm", "", "group_mean");
    gpu_long(&call, lines);
    gpu_size(&call, width);
    gpu_long(&call, a->spatial * width);
    gpu_int(&call, inverse);
    gpu_float(&call, a->epsilon);
    gpu_array(&call, sums);
    gpu_array(&call, out);
    return gpu_run_each(&call, lines);
}

static tr_status sums_of_channels(tr_device *device, const struct tr_op_group_norm_forward *a,
                                  const float *mean, float *sums)
{
    struct gpu_call call;
    gpu_begin(&call, device, "group_norm", "", "group_sums");
    gpu_long(&call, a->rows * a->channels);
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_size(&call, a->groups);
    gpu_array(&call, a->x);
    gpu_array(&call, mean);
    gpu_array(&call, sums);
    return gpu_run_each(&call, a->rows * a->channels);
}

tr_status gpu_group_norm_forward(tr_device *device, const struct tr_op_group_norm_forward *a)
{
    void *sums;
    TR_TRY(gpu_scratch(device, (size_t)(a->rows * a->channels) * sizeof(float), &sums));
    TR_TRY(sums_of_channels(device, a, NULL, sums));
    TR_TRY(mean_of_groups(device, a, sums, false, a->mean));
    TR_TRY(sums_of_channels(device, a, a->mean, sums));
    TR_TRY(mean_of_groups(device, a, sums, true, a->inv));
    int shift = gpu_shift(device, a->channels);
    struct gpu_call call;
    gpu_begin(&call, device, "group_norm", "", "group_norm_forward");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_size(&call, a->groups);
    gpu_int(&call, shift);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->beta);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    gpu_array(&call, a->y);
    return gpu_run_channels(&call, shift, a->channels, a->spatial, a->rows);
}

/* Memory of a gradient: sums and products [rows][channels], averages of both [rows][groups], leaves
   [microbatches] [channels]. */
struct scratch {
    float *sums, *products, *averages, *with_xhat, *leaves;
};

static tr_status make_scratch(tr_device *device, const struct tr_op_group_norm_backward *a, int64_t rows,
                              struct scratch *out)
{
    const int64_t channels = rows * a->channels, groups = rows * a->groups;
    void *memory;
    TR_TRY(gpu_scratch(device, (size_t)(2 * (channels + groups) + a->cut.count * a->channels) * sizeof(float),
                       &memory));
    out->sums = memory;
    out->products = out->sums + channels;
    out->averages = out->products + channels;
    out->with_xhat = out->averages + groups;
    out->leaves = out->with_xhat + groups;
    return TR_OK;
}

static tr_status gradients_of_channels(tr_device *device, const struct tr_op_group_norm_backward *a,
                                       int64_t rows, const struct scratch *scratch)
{
    struct gpu_call call;
    gpu_begin(&call, device, "group_norm", "", "group_gradients");
    gpu_long(&call, rows * a->channels);
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_size(&call, a->groups);
    gpu_array(&call, a->x);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    gpu_array(&call, a->dy);
    gpu_array(&call, scratch->sums);
    gpu_array(&call, scratch->products);
    return gpu_run_each(&call, rows * a->channels);
}

static tr_status gradient_of_input(tr_device *device, const struct tr_op_group_norm_backward *a, int64_t rows,
                                   const struct scratch *scratch)
{
    const int64_t width = a->channels / a->groups;
    struct gpu_call call;
    gpu_begin(&call, device, "group_norm", "", "group_averages");
    gpu_long(&call, rows * a->groups);
    gpu_size(&call, width);
    gpu_size(&call, a->groups);
    gpu_long(&call, a->spatial * width);
    gpu_array(&call, a->gamma);
    gpu_array(&call, scratch->sums);
    gpu_array(&call, scratch->products);
    gpu_array(&call, scratch->averages);
    gpu_array(&call, scratch->with_xhat);
    TR_TRY(gpu_run_each(&call, rows * a->groups));
    int shift = gpu_shift(device, a->channels);
    gpu_begin(&call, device, "group_norm", "", "group_norm_backward");
    gpu_size(&call, a->spatial);
    gpu_size(&call, a->channels);
    gpu_size(&call, a->groups);
    gpu_int(&call, shift);
    gpu_array(&call, a->x);
    gpu_array(&call, a->gamma);
    gpu_array(&call, a->mean);
    gpu_array(&call, a->inv);
    gpu_array(&call, scratch->averages);
    gpu_array(&call, scratch->with_xhat);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->dx);
    return gpu_run_channels(&call, shift, a->channels, a->spatial, rows);
}

tr_status gpu_group_norm_backward(tr_device *device, const struct tr_op_group_norm_backward *a)
{
    const int64_t rows = a->cut.count > 0 ? a->cut.row[a->cut.count] : 0;
    struct scratch scratch;
    TR_TRY(make_scratch(device, a, rows, &scratch));
    TR_TRY(gradients_of_channels(device, a, rows, &scratch));
    if (a->dx) TR_TRY(gradient_of_input(device, a, rows, &scratch));
    TR_TRY(gpu_sum_columns(device, &a->cut, 1, a->channels, scratch.products, a->dgamma, scratch.leaves));
    return gpu_sum_columns(device, &a->cut, 1, a->channels, scratch.sums, a->dbeta, scratch.leaves);
}
