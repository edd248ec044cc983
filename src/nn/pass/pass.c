/* Making and releasing a pass: its block of memory (layout.c), and its other memory: the weights of the
 * classes, the tokens of images, outputs for an observer.
 */
#include "nn/pass/internal.h"

#include "nn/base_numbers.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>

/* Alignment of an output for an observer, in bytes. */
#define OUTPUT_GRAIN 64

static tr_status allocate_tables(struct tr_pass *pass)
{
    pass->layer = tr_alloc_zero((size_t)pass->model->layer_count, sizeof *pass->layer);
    pass->group = tr_alloc_zero((size_t)pass->model->layer_count, sizeof *pass->group);
    pass->single = tr_alloc((size_t)pass->limits.microbatches + 1, sizeof *pass->single);
    for (int32_t i = 0; pass->single && i <= pass->limits.microbatches; i++) pass->single[i] = i;
    return pass->layer && pass->group && pass->single ? TR_OK : TR_ENOMEM;
}

static void release_tables(struct tr_pass *pass)
{
    tr_free(pass->layer);
    tr_free(pass->group);
    tr_free(pass->single);
}

static void fill_head(struct tr_pass *pass, tr_device *device, const struct tr_model *model,
                      const struct tr_pass_limits *limits)
{
    *pass = (struct tr_pass){.device = device, .model = model, .limits = *limits};
    if (limits->end_layer == 0) pass->limits.end_layer = model->layer_count;
    pass->entry = tr_model_source(model, limits->first_layer - 1);
    pass->exit = tr_model_source(model, pass->limits.end_layer - 1);
    assert(pass->entry < pass->exit);
    tr_pass_arena(model, limits->first_layer, pass->limits.end_layer, &pass->arena_begin, &pass->arena_end);
}

/* The weights of the classes, or the quantiles, stay the same in all runs, in separate memory. */
static tr_status make_weights(struct tr_pass *pass)
{
    const struct tr_model *model = pass->model;
    size_t outputs = (size_t)tr_loss_width(&model->loss, tr_shape_count(&model->output));
    if (!pass_is_last(pass)) return TR_OK;
    float *weight = tr_alloc(outputs, sizeof *weight);
    if (!weight) return TR_ENOMEM;
    if (!tr_loss_weights(&model->loss, (int64_t)outputs, weight)) {
        tr_free(weight);
        return TR_OK;
    }
    tr_status status = tr_device_alloc(pass->device, outputs * sizeof *weight, &pass->weight);
    if (status == TR_OK) {
        status = tr_device_to_device(pass->device, pass->weight, weight, outputs * sizeof *weight);
        tr_status finished = tr_device_wait(pass->device);
        if (status == TR_OK) status = finished;
    }
    tr_free(weight);
    return status;
}

/* Writes where the tokens of each example begin, which never changes. */
static tr_status place_tokens(struct tr_pass *pass, struct pass_length *length)
{
    const int64_t each = length->tokens, examples = pass->limits.examples;
    length->row = tr_alloc_zero((size_t)pass->limits.microbatches + 1, sizeof *length->row);
    if (!length->row) return TR_ENOMEM;
    if (examples == 0) return TR_OK;
    if (examples > INT32_MAX / each)
        return tr_fail(TR_EINVAL, "%lld images of %lld tokens are too many at a time; make the batch smaller",
                       (long long)examples, (long long)each);
    int32_t *offset = tr_alloc((size_t)examples + 1, sizeof *offset);
    if (!offset) return TR_ENOMEM;
    for (int64_t i = 0; i <= examples; i++) offset[i] = (int32_t)(i * each);
    size_t bytes = (size_t)(examples + 1) * sizeof *offset;
    tr_status status = tr_device_alloc(pass->device, bytes, &length->offset);
    if (status == TR_OK) status = tr_device_to_device(pass->device, length->offset, offset, bytes);
    tr_status finished = tr_device_wait(pass->device);
    tr_free(offset);
    return status == TR_OK ? finished : status;
}

/* An entry for each number of tokens that layers take or give. */
static tr_status place_lengths(struct tr_pass *pass)
{
    const struct tr_model *model = pass->model;
    for (int i = 0; i < model->layer_count; i++) {
        const int64_t tokens = model->layers[i].tokens_out;
        if (tokens <= 0 || pass_length_of(pass, tokens)) continue;
        if (!tr_grow(&pass->length, pass->length_count, sizeof *pass->length)) return TR_ENOMEM;
        pass->length[pass->length_count] = (struct pass_length){.tokens = tokens};
        TR_TRY(place_tokens(pass, &pass->length[pass->length_count++]));
    }
    return TR_OK;
}

static void release_lengths(struct tr_pass *pass)
{
    for (int i = 0; i < pass->length_count; i++) {
        if (pass->length[i].offset) tr_device_free(pass->device, pass->length[i].offset);
        tr_free(pass->length[i].row);
    }
    tr_free(pass->length);
}

tr_status tr_pass_create(tr_device *device, const struct tr_model *model, const struct tr_pass_limits *limits,
                         tr_pass **out)
{
    struct tr_pass *pass = tr_alloc_zero(1, sizeof *pass);
    if (!pass) return TR_ENOMEM;
    fill_head(pass, device, model, limits);
    size_t bytes;
    tr_status status = allocate_tables(pass);
    if (status == TR_OK) status = pass_lay_out(pass, device, &bytes);
    if (status == TR_OK) status = tr_base_numbers_enter(model, device, &pass->base);
    if (status == TR_OK) status = make_weights(pass);
    if (status == TR_OK) status = place_lengths(pass);
    if (status == TR_OK) status = pass_rehearse(pass);
    if (status != TR_OK) {
        tr_pass_destroy(&pass);
        return status;
    }
    *out = pass;
    return TR_OK;
}

tr_status tr_pass_memory(const tr_device *device, const struct tr_model *model,
                         const struct tr_pass_limits *limits, size_t *bytes)
{
    struct tr_pass pass;
    fill_head(&pass, NULL, model, limits);
    tr_status status = allocate_tables(&pass);
    if (status == TR_OK) status = pass_lay_out(&pass, device, bytes);
    release_tables(&pass);
    return status;
}

tr_status tr_pass_recomputed(const tr_device *device, const struct tr_model *model,
                             const struct tr_pass_limits *limits, bool *again)
{
    struct tr_pass pass;
    size_t bytes;
    fill_head(&pass, NULL, model, limits);
    tr_status status = allocate_tables(&pass);
    if (status == TR_OK) status = pass_lay_out(&pass, device, &bytes);
    for (int i = 0; i < model->layer_count && status == TR_OK; i++)
        again[i] = pass.layer[i].again && pass.group[pass.layer[i].group].trigger >= 0;
    release_tables(&pass);
    return status;
}

/* Bytes of a layer's output within a fusion, rounded up. */
static int64_t spare_bytes(const struct tr_pass *pass, int i)
{
    int64_t bytes = pass_output_bytes(&pass->limits, &pass->model->layers[i]);
    return (bytes + OUTPUT_GRAIN - 1) / OUTPUT_GRAIN * OUTPUT_GRAIN;
}

tr_status pass_prepare_observed(struct tr_pass *pass)
{
    const struct tr_pass_limits *limits = &pass->limits;
    int64_t bytes = 0;
    if (pass->spare) return TR_OK;
    for (int i = limits->first_layer; i < limits->end_layer; i++)
        if (pass_is_within(pass, i)) bytes += spare_bytes(pass, i);
    if (bytes == 0) return TR_OK;
    TR_TRY(tr_device_alloc(pass->device, (size_t)bytes, &pass->spare));
    for (int i = limits->end_layer - 1; i >= limits->first_layer; i--) {
        if (!pass_is_within(pass, i)) continue;
        bytes -= spare_bytes(pass, i);
        pass->layer[i].output = (char *)pass->spare + bytes;
    }
    return TR_OK;
}

void tr_pass_destroy(tr_pass **handle)
{
    struct tr_pass *pass = *handle;
    if (!pass) return;
    if (pass->base) tr_base_numbers_leave(pass->model, pass->device);
    if (pass->memory) tr_device_free(pass->device, pass->memory);
    if (pass->spare) tr_device_free(pass->device, pass->spare);
    if (pass->weight) tr_device_free(pass->device, pass->weight);
    release_lengths(pass);
    release_tables(pass);
    tr_free(pass);
    *handle = NULL;
}
