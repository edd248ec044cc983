/* Long short-term memory, gated recurrent units: all rows of an example in one launch. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"

#include "base/fail.h"

/* Examples that share a group, and so its reads of the weights: many, if that leaves enough work for all
 * compute units.
 */
static int64_t sharing(tr_device *device, int64_t examples, const char **options)
{
    bool many = examples >= 8 * (int64_t)gpu_info_of(device)->units;
    *options = many ? "-DEXAMPLES=8" : "-DEXAMPLES=2";
    return many ? 8 : 2;
}

tr_status gpu_lstm_forward(tr_device *device, const struct tr_op_lstm_forward *a)
{
    const char *options;
    int64_t share = sharing(device, a->examples, &options);
    struct gpu_call call;
    gpu_begin(&call, device, "recurrent", options, "lstm_forward");
    gpu_long(&call, a->examples);
    gpu_size(&call, a->hidden);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->w);
    gpu_array(&call, a->b);
    gpu_array(&call, a->gates);
    gpu_array(&call, a->c);
    gpu_array(&call, a->h);
    gpu_array(&call, a->h_before);
    gpu_array(&call, a->c_before);
    return gpu_run(&call, gpu_groups(a->examples, share), 1, 1);
}

/* to [columns][rows] = from [rows][columns]. */
static tr_status transpose(tr_device *device, const char *options, int64_t rows, int64_t columns,
                           const float *from, float *to)
{
    enum { SIDE = 16 };
    struct gpu_call call;
    gpu_begin(&call, device, "recurrent", options, "transpose");
    gpu_size(&call, rows);
    gpu_size(&call, columns);
    gpu_array(&call, from);
    gpu_array(&call, to);
    return gpu_run(&call, gpu_groups(columns, SIDE), gpu_groups(rows, SIDE), 1);
}

tr_status gpu_lstm_backward(tr_device *device, const struct tr_op_lstm_backward *a)
{
    const char *options;
    int64_t share = sharing(device, a->examples, &options), weights = 4 * a->hidden * a->hidden;
    void *scratch;
    TR_TRY(gpu_scratch(device, (size_t)(weights + a->examples * a->hidden) * sizeof(float), &scratch));
    float *w = scratch, *dc = w + weights;
    TR_TRY(transpose(device, options, a->hidden, 4 * a->hidden, a->w, w));
    struct gpu_call call;
    gpu_begin(&call, device, "recurrent", options, "lstm_backward");
    gpu_long(&call, a->examples);
    gpu_size(&call, a->hidden);
    gpu_int(&call, a->truncate);
    gpu_array(&call, a->offset);
    gpu_array(&call, w);
    gpu_array(&call, a->gates);
    gpu_array(&call, a->c);
    gpu_array(&call, a->dy);
    gpu_array(&call, dc);
    gpu_array(&call, a->dgates);
    return gpu_run(&call, gpu_groups(a->examples, share), 1, 1);
}

/* Leaves and nodes of dw [hidden][width], see recurrent_backward_weights() of the kernels. */
static tr_status backward_weights(tr_device *device, int64_t examples, int64_t hidden, int64_t width,
                                  const int32_t *offset, const float *h, const float *dgates,
                                  const struct tr_cut *of, float *dw)
{
    enum { TILE = 32, WORKERS = 64 };
    const char *options;
    (void)sharing(device, examples, &options);
    int64_t size = hidden * width, stride;
    struct gpu_cut cut;
    void *scratch;
    TR_TRY(gpu_cut(device, of, &cut));
    TR_TRY(gpu_scratch(device, (size_t)(of->count * size) * sizeof(float), &scratch));
    float *leaves = gpu_leaves(of, size, dw, scratch, &stride);
    struct gpu_call call;
    gpu_begin(&call, device, "recurrent", options, "recurrent_backward_weights");
    call.launch.threads = WORKERS;
    gpu_size(&call, hidden);
    gpu_size(&call, width);
    gpu_array(&call, cut.row);
    gpu_array(&call, offset);
    gpu_array(&call, h);
    gpu_array(&call, dgates);
    gpu_long(&call, stride);
    gpu_array(&call, leaves);
    TR_TRY(gpu_run(&call, gpu_groups(width, TILE), gpu_groups(hidden, TILE), of->count));
    return gpu_tree(device, of, size, dw, leaves);
}

tr_status gpu_lstm_backward_weights(tr_device *device, const struct tr_op_lstm_backward_weights *a)
{
    return backward_weights(device, a->examples, a->hidden, 4 * a->hidden, a->offset, a->h, a->dgates,
                            &a->cut, a->dw);
}

tr_status gpu_gru_forward(tr_device *device, const struct tr_op_gru_forward *a)
{
    const char *options;
    int64_t share = sharing(device, a->examples, &options);
    struct gpu_call call;
    gpu_begin(&call, device, "recurrent", options, "gru_forward");
    gpu_long(&call, a->examples);
    gpu_size(&call, a->hidden);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->w);
    gpu_array(&call, a->b);
    gpu_array(&call, a->b_hidden);
    gpu_array(&call, a->gates);
    gpu_array(&call, a->inner);
    gpu_array(&call, a->h);
    return gpu_run(&call, gpu_groups(a->examples, share), 1, 1);
}

tr_status gpu_gru_backward(tr_device *device, const struct tr_op_gru_backward *a)
{
    const char *options;
    int64_t share = sharing(device, a->examples, &options), weights = 3 * a->hidden * a->hidden;
    void *scratch;
    TR_TRY(gpu_scratch(device, (size_t)(weights + a->examples * a->hidden) * sizeof(float), &scratch));
    float *w = scratch, *dh = w + weights;
    TR_TRY(transpose(device, options, a->hidden, 3 * a->hidden, a->w, w));
    struct gpu_call call;
    gpu_begin(&call, device, "recurrent", options, "gru_backward");
    gpu_long(&call, a->examples);
    gpu_size(&call, a->hidden);
    gpu_array(&call, a->offset);
    gpu_array(&call, w);
    gpu_array(&call, a->gates);
    gpu_array(&call, a->inner);
    gpu_array(&call, a->h);
    gpu_array(&call, a->dy);
    gpu_array(&call, dh);
    gpu_array(&call, a->dgates);
    gpu_array(&call, a->dhidden);
    return gpu_run(&call, gpu_groups(a->examples, share), 1, 1);
}

tr_status gpu_gru_backward_weights(tr_device *device, const struct tr_op_gru_backward_weights *a)
{
    return backward_weights(device, a->examples, a->hidden, 3 * a->hidden, a->offset, a->h, a->dhidden,
                            &a->cut, a->dw);
}
