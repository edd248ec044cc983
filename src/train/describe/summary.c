#include "train/describe/summary.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "job/step/gradient.h"
#include "job/step/lesson.h"
#include "strategy/strategy.h"

#include <string.h>

#define FLOAT ((int64_t)sizeof(float))

static tr_status open_job(struct tr_summary *summary, const struct tr_inspect_settings *what)
{
    struct tr_job_settings settings = {.set = what->set,
                                       .set_count = what->set_count,
                                       .given = what->data,
                                       .given_count = what->data_count,
                                       .outline = true,
                                       .first_of_strategy = tr_strategy_first_option};
    if (what->data_count > 0) {
        TR_TRY(tr_store_create(NULL, NULL, 0, &summary->store));
        tr_store_give(summary->store, what->data, what->data_count);
    }
    settings.store = summary->store;
    if (what->model_text) {
        const struct tr_job_text model = {
            .text = what->model_text,
            .length = what->model_length > 0 ? what->model_length : strlen(what->model_text),
            .name = what->model_name ? what->model_name : "model",
            .directory = what->directory,
        };
        return tr_job_open_text(&model, &settings, &summary->job);
    }
    if (what->path && !tr_file_is_directory(what->path))
        return tr_job_open(what->path, &settings, &summary->job);
    TR_TRY(what->path ? tr_checkpoint_open(what->path, &summary->checkpoint)
                      : tr_checkpoint_open_state(&what->state, &summary->checkpoint));
    return tr_job_restore(summary->checkpoint, &settings, &summary->job);
}

static void summarize_layer(const struct tr_model *model, const struct tr_layer *layer,
                            struct tr_layer_summary *out)
{
    out->per_token = layer->in[0].sequence && !layer->fed;
    out->operations = layer->flops;
    out->parameters = tr_model_learned(model, (int)(layer - model->layers));
    if (layer->alias) return;
    out->bytes = tr_shape_count(&layer->out) * FLOAT;
    for (int i = 0; i < layer->buffer_count; i++) {
        const struct tr_buffer *buffer = &layer->buffer[i];
        enum tr_buffer_unit unit = out->per_token ? TR_PER_ROW : TR_PER_EXAMPLE;
        bool counts = buffer->unit == unit || (!out->per_token && buffer->unit == TR_PER_ROW);
        if (counts && !buffer->backward_only) out->bytes += buffer->bytes;
    }
}

/* Whether a gradient flows into layer `index`'s inputs: a layer before it has parameters. */
static bool passes_gradient(const struct tr_model *model, int index, const bool *trains)
{
    const struct tr_layer *layer = &model->layers[index];
    for (int k = 0; k < layer->input_count; k++)
        if (layer->input[k] >= 0 && trains[layer->input[k]]) return true;
    return false;
}

/* How often a layer is computed for each example. */
static int64_t times_of(const struct tr_summary *summary, int i)
{
    const int64_t tokens = summary->job->model->layers[i].tokens_in;
    if (!summary->layer[i].per_token) return 1;
    return tokens > 0 ? tokens : tokens < 0 ? summary->second_tokens : summary->tokens;
}

static tr_status count_operations(struct tr_summary *summary)
{
    const struct tr_model *model = summary->job->model;
    bool *trains = tr_alloc_zero((size_t)model->layer_count, sizeof *trains);
    if (!trains) return TR_ENOMEM;
    int64_t backward = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer_summary *layer = &summary->layer[i];
        int64_t operations = layer->operations * times_of(summary, i);
        bool passes = passes_gradient(model, i, trains);
        trains[i] = passes || layer->parameters > 0;
        summary->operations += operations;
        backward += operations * ((passes ? 1 : 0) + (layer->parameters > 0 ? 1 : 0));
    }
    summary->step_operations = (summary->operations + backward) * summary->job->train.batch;
    tr_free(trains);
    return TR_OK;
}

static tr_status count_again(struct tr_summary *summary, const struct tr_pass_limits *limits)
{
    const struct tr_model *model = summary->job->model;
    bool *again = tr_alloc_zero((size_t)model->layer_count, sizeof *again);
    if (!again) return TR_ENOMEM;
    tr_status status = tr_pass_recomputed(NULL, model, limits, again);
    for (int i = 0; i < model->layer_count && status == TR_OK; i++) {
        struct tr_layer_summary *layer = &summary->layer[i];
        layer->again = again[i];
        if (again[i])
            summary->again_operations += layer->operations * times_of(summary, i) * summary->job->train.batch;
    }
    summary->step_operations += summary->again_operations;
    tr_free(again);
    return status;
}

static tr_status measure_pass(struct tr_summary *summary)
{
    struct tr_gradient_plan plan;
    size_t bytes;
    int64_t batch = summary->job->train.batch, spared;
    struct tr_gradient_part whole = {.end = summary->job->train.microbatches};
    tr_gradient_plan(summary->job, &whole, batch, batch * summary->tokens, batch * summary->second_tokens,
                     &plan);
    TR_TRY(tr_pass_memory(NULL, summary->job->model, &plan.limits, &bytes));
    summary->pass_bytes = (int64_t)bytes;
    /* A job can be inspected without its teacher. */
    if (tr_lesson_expect(summary->job, &plan.limits, &summary->teacher_bytes) != TR_OK)
        summary->teacher_bytes = 0;
    TR_TRY(count_again(summary, &plan.limits));
    TR_TRY(tr_strategy_spares(summary->job, &spared));
    summary->gradient_bytes = plan.slots * plan.stride * FLOAT - spared;
    struct tr_pass_limits one = {
        .examples = 1, .tokens = summary->tokens, .second_tokens = summary->second_tokens};
    TR_TRY(tr_pass_memory(NULL, summary->job->model, &one, &bytes));
    summary->inference_bytes = (int64_t)bytes;
    return TR_OK;
}

static void measure_parameters(struct tr_summary *summary)
{
    const struct tr_optimizer *optimizer = &summary->job->optimizer;
    unsigned states = tr_optimizer_states(optimizer, TR_PARAMETER_WEIGHT) |
                      tr_optimizer_states(optimizer, TR_PARAMETER_BIAS);
    const struct tr_model *model = summary->job->model;
    for (int i = 0; i < model->base_count; i++) summary->base_parameters += model->base[i].count;
    summary->base_bytes = model->base_floats * FLOAT;
    summary->parameter_bytes = summary->job->model->arena_floats * FLOAT;
    summary->state_bytes =
        __builtin_popcount(states) * summary->parameter_bytes + tr_variables_scratch(model, optimizer);
}

/* Checked products: a model file can describe networks too large for any machine. */
static tr_status check_sizes(const struct tr_summary *summary)
{
    int64_t product;
    for (int i = 0; i < summary->job->model->layer_count; i++) {
        const struct tr_layer_summary *layer = &summary->layer[i];
        const int64_t times = times_of(summary, i),
                      units = summary->job->train.batch * (times > 0 ? times : 1);
        if (__builtin_mul_overflow(layer->operations, 4 * units, &product) ||
            __builtin_mul_overflow(layer->bytes, 4 * units, &product) || product > INT64_MAX / 4096)
            return tr_fail(TR_EINVAL, "layer \"%s\" is too large to count its operations in a step",
                           summary->job->model->layers[i].name);
    }
    return TR_OK;
}

/* Only the data determine the length of sequences; a checkpoint may be inspected without its data. */
static int64_t tokens_of(struct tr_job *job)
{
    if (job->model->image_tokens > 0) return job->model->image_tokens;
    if (!job->model->input.sequence) return 0;
    if (tr_job_open_set(job, TR_SET_TRAIN) != TR_OK) return -1;
    return tr_source_info(job->source[TR_SET_TRAIN])->max_tokens;
}

tr_status tr_summary_make(const struct tr_inspect_settings *what, struct tr_summary *out)
{
    *out = (struct tr_summary){0};
    TR_TRY(open_job(out, what));
    const struct tr_model *model = out->job->model;
    out->layer = tr_alloc_zero((size_t)model->layer_count, sizeof *out->layer);
    if (!out->layer) return TR_ENOMEM;
    for (int i = 0; i < model->layer_count; i++) summarize_layer(model, &model->layers[i], &out->layer[i]);
    out->tokens = tokens_of(out->job);
    if (out->tokens > 0 && model->second_text[0])
        out->second_tokens = out->job->source[TR_SET_TRAIN]->parts->second_tokens;
    measure_parameters(out);
    TR_TRY(check_sizes(out));
    if (out->tokens < 0) return TR_OK;
    TR_TRY(count_operations(out));
    return measure_pass(out);
}

void tr_summary_release(struct tr_summary *summary)
{
    tr_free(summary->layer);
    tr_job_destroy(&summary->job);
    tr_store_destroy(&summary->store);
    tr_checkpoint_close(&summary->checkpoint);
    *summary = (struct tr_summary){0};
}
