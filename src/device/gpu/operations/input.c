/* Images with their labels, gathered rows, and dropout. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"

tr_status gpu_load_images(tr_device *device, const struct tr_op_load_images *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", "load_images");
    gpu_long(&call, a->rows);
    const int32_t shape[] = {a->in_h, a->in_w, a->out_h, a->out_w, a->channels, a->pad, a->random, a->flip};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) gpu_int(&call, shape[i]);
    for (int i = 0; i < 4; i++) gpu_float(&call, a->scale[i]);
    for (int i = 0; i < 4; i++) gpu_float(&call, a->shift[i]);
    gpu_uint(&call, a->key[0]);
    gpu_uint(&call, a->key[1]);
    gpu_uint(&call, a->first_example);
    gpu_array(&call, a->source);
    gpu_array(&call, a->index);
    gpu_array(&call, a->y);
    gpu_memory(&call, a->random ? a->scalars : NULL, sizeof(uint32_t));
    int64_t values = (int64_t)a->out_h * a->out_w * a->channels;
    return gpu_run(&call, gpu_groups(values, gpu_threads(device)), gpu_walkers(a->rows), 1);
}

tr_status gpu_load_labels(tr_device *device, const struct tr_op_load_labels *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", "load_labels");
    gpu_long(&call, a->rows);
    const int32_t shape[] = {a->in_h, a->in_w, a->out_h, a->out_w, a->pad, a->random, a->flip};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) gpu_int(&call, shape[i]);
    gpu_uint(&call, a->key[0]);
    gpu_uint(&call, a->key[1]);
    gpu_uint(&call, a->first_example);
    gpu_array(&call, a->source);
    gpu_array(&call, a->index);
    gpu_array(&call, a->y);
    gpu_memory(&call, a->random ? a->scalars : NULL, sizeof(uint32_t));
    int64_t pixels = (int64_t)a->out_h * a->out_w;
    return gpu_run(&call, gpu_groups(pixels, gpu_threads(device)), gpu_walkers(a->rows), 1);
}

tr_status gpu_augment_images(tr_device *device, const struct tr_op_augment_images *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", "augment_images");
    gpu_long(&call, a->rows);
    const int32_t shape[] = {a->in_h, a->in_w, a->out_h, a->out_w, a->channels, a->tint};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) gpu_int(&call, shape[i]);
    gpu_float(&call, a->least);
    gpu_float(&call, a->most);
    gpu_float(&call, a->erased);
    for (int i = 0; i < 4; i++) gpu_float(&call, a->scale[i]);
    for (int i = 0; i < 4; i++) gpu_float(&call, a->shift[i]);
    gpu_array(&call, a->source);
    gpu_array(&call, a->numbers);
    gpu_array(&call, a->index);
    gpu_memory(&call, a->view, sizeof(int64_t));
    gpu_array(&call, a->y);
    int64_t values = (int64_t)a->out_h * a->out_w * a->channels;
    return gpu_run(&call, gpu_groups(values, gpu_threads(device)), gpu_walkers(a->rows), 1);
}

tr_status gpu_augment_labels(tr_device *device, const struct tr_op_augment_labels *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", "augment_labels");
    gpu_long(&call, a->rows);
    const int32_t shape[] = {a->in_h, a->in_w, a->out_h, a->out_w};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) gpu_int(&call, shape[i]);
    gpu_array(&call, a->source);
    gpu_array(&call, a->index);
    gpu_memory(&call, a->view, sizeof(int64_t));
    gpu_array(&call, a->y);
    int64_t pixels = (int64_t)a->out_h * a->out_w;
    return gpu_run(&call, gpu_groups(pixels, gpu_threads(device)), gpu_walkers(a->rows), 1);
}

tr_status gpu_mix_images(tr_device *device, const struct tr_op_mix_images *a)
{
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", "mix_images");
    gpu_long(&call, a->rows);
    gpu_int(&call, a->height);
    gpu_int(&call, a->width);
    gpu_int(&call, a->channels);
    gpu_array(&call, a->x);
    gpu_array(&call, a->z);
    gpu_memory(&call, a->mix, sizeof(uint32_t));
    gpu_array(&call, a->y);
    int64_t values = (int64_t)a->height * a->width * a->channels;
    return gpu_run(&call, gpu_groups(values, gpu_threads(device)), gpu_walkers(a->rows), 1);
}

/* Groups that share an example, whose length only the device knows. */
#define SHARERS 4

tr_status gpu_gather_rows(tr_device *device, const struct tr_op_gather_rows *a)
{
    int shift = gpu_shift(device, a->start ? INT32_MAX : a->width);
    int64_t groups = a->start ? SHARERS : gpu_walkers(gpu_groups(a->width, (int64_t)1 << shift));
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", "gather_rows");
    gpu_long(&call, a->rows);
    gpu_long(&call, a->width);
    gpu_long(&call, a->stride);
    gpu_int(&call, shift);
    gpu_array(&call, a->index);
    gpu_array(&call, a->start);
    gpu_array(&call, a->start ? a->offset : NULL);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_lines(&call, shift, a->rows, groups << shift);
}

/* Dropout by the kernel `name`, whose threads share the `units` of an example's row. */
static tr_status drop(tr_device *device, const char *name, const struct tr_op_dropout *a, int64_t units)
{
    int shift = gpu_shift(device, a->offset ? INT32_MAX : units);
    struct gpu_call call;
    gpu_begin(&call, device, "input", "", name);
    gpu_long(&call, a->examples);
    gpu_long(&call, a->width);
    gpu_int(&call, shift);
    gpu_float(&call, a->rate);
    gpu_uint(&call, a->key[0]);
    gpu_uint(&call, a->key[1]);
    gpu_uint(&call, a->layer);
    gpu_uint(&call, a->first_example);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    gpu_memory(&call, a->scalars, sizeof(uint32_t));
    int64_t groups = a->offset ? SHARERS : gpu_walkers(gpu_groups(units, (int64_t)1 << shift));
    return gpu_run_lines(&call, shift, a->examples, groups << shift);
}

tr_status gpu_dropout(tr_device *device, const struct tr_op_dropout *a)
{
    return drop(device, "dropout", a, gpu_groups(a->width, 4));
}

tr_status gpu_drop_examples(tr_device *device, const struct tr_op_drop_examples *a)
{
    const struct tr_op_dropout same = {
        .examples = a->examples,
        .width = a->width,
        .offset = a->offset,
        .x = a->x,
        .y = a->y,
        .rate = a->rate,
        .key = {a->key[0], a->key[1]},
        .layer = a->layer,
        .first_example = a->first_example,
        .scalars = a->scalars,
    };
    return drop(device, "drop_examples", &same, a->width);
}
