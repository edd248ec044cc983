#include "train/evaluate.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_evaluator {
    tr_device *device;
    const struct tr_job *job;
    const tr_source *source;
    tr_loader *loader;
    tr_feed *feed;
    tr_pass *pass;
    int64_t batch;
    float *loss, *correct, *output; /* host, one batch */
};

tr_status tr_evaluator_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              tr_evaluator **out)
{
    tr_evaluator *evaluator = tr_alloc_zero(1, sizeof *evaluator);
    if (!evaluator) return TR_ENOMEM;
    *evaluator = (tr_evaluator){.device = device, .job = job, .source = source};
    int64_t count = tr_source_info(source)->count, outputs = tr_shape_count(&job->model->output);
    int64_t batch = job->train.evaluate_batch < count ? job->train.evaluate_batch : count;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    struct tr_order order;
    tr_status status;
    evaluator->batch = batch;
    TR_TRY_GOTO(tr_order_make(&order, count, batch, TR_LAST_BATCH_KEEP, false, 0), fail);
    options.end_step = order.steps_per_epoch;
    TR_TRY_GOTO(tr_loader_create(source, &order, &options, &evaluator->loader), fail);
    struct tr_pass_limits limits = {
        .examples = batch, .tokens = tr_loader_tokens(evaluator->loader), .microbatches = 1};
    TR_TRY_GOTO(tr_pass_create(device, job->model, &limits, &evaluator->pass), fail);
    TR_TRY_GOTO(tr_feed_create(device, job, source, batch, false, &evaluator->feed), fail);
    evaluator->loss = tr_alloc((size_t)batch, sizeof *evaluator->loss);
    evaluator->correct = tr_alloc((size_t)batch, sizeof *evaluator->correct);
    evaluator->output = tr_alloc((size_t)(batch * outputs), sizeof *evaluator->output);
    status = evaluator->loss && evaluator->correct && evaluator->output ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto fail;
    *out = evaluator;
    return TR_OK;
fail:
    tr_evaluator_destroy(&evaluator);
    return status;
}

void tr_evaluator_destroy(tr_evaluator **handle)
{
    tr_evaluator *evaluator = *handle;
    if (!evaluator) return;
    tr_loader_destroy(&evaluator->loader);
    tr_pass_destroy(&evaluator->pass);
    tr_feed_destroy(&evaluator->feed);
    tr_free(evaluator->loss);
    tr_free(evaluator->correct);
    tr_free(evaluator->output);
    tr_free(evaluator);
    *handle = NULL;
}

struct totals {
    double loss, correct;
};

/* Runs rows [begin, end) of a batch and adds their losses. */
static tr_status run_rows(tr_evaluator *evaluator, const struct tr_batch *batch, int64_t begin, int64_t end,
                          const float *parameters, bool labelled, struct totals *totals)
{
    const struct tr_model *model = evaluator->job->model;
    int64_t rows = end - begin;
    struct tr_pass_batch part = {
        .examples = rows,
        .tokens = model->input.sequence ? batch->offset[end] - batch->offset[begin] : 0,
        .global_examples = rows,
    };
    TR_TRY(tr_feed_rows(evaluator->feed, evaluator->pass, batch, begin, end, 0, NULL));
    TR_TRY(tr_pass_forward(evaluator->pass, &part, parameters, NULL, 0));
    size_t outputs = (size_t)(rows * tr_shape_count(&model->output));
    TR_TRY(tr_device_to_host(evaluator->device, evaluator->output, tr_pass_output(evaluator->pass),
                             outputs * sizeof(float)));
    if (!labelled) return tr_device_wait(evaluator->device);
    TR_TRY(tr_pass_loss(evaluator->pass, &part));
    size_t bytes = (size_t)rows * sizeof(float);
    TR_TRY(tr_device_to_host(evaluator->device, evaluator->loss, tr_pass_loss_rows(evaluator->pass), bytes));
    TR_TRY(tr_device_to_host(evaluator->device, evaluator->correct, tr_pass_correct_rows(evaluator->pass),
                             bytes));
    TR_TRY(tr_device_wait(evaluator->device));
    for (int64_t i = 0; i < rows; i++) {
        totals->loss += (double)evaluator->loss[i];
        totals->correct += (double)evaluator->correct[i];
    }
    return TR_OK;
}

tr_status tr_evaluator_run(tr_evaluator *evaluator, const float *parameters, int64_t first, int64_t end,
                           tr_output_listener listener, void *user, struct tr_evaluation *result)
{
    struct totals totals = {0, 0};
    for (int64_t at = first; at < end;) {
        const struct tr_batch *batch;
        TR_TRY(tr_loader_get(evaluator->loader, at / evaluator->batch, &batch));
        int64_t begin = at % evaluator->batch, rows = batch->rows - begin;
        if (rows > end - at) rows = end - at;
        TR_TRY(run_rows(evaluator, batch, begin, begin + rows, parameters, result != NULL, &totals));
        if (listener)
            TR_TRY(listener(user, at, rows, evaluator->output, batch->labels ? batch->labels + begin : NULL));
        at += rows;
    }
    if (!result) return TR_OK;
    double count = end > first ? (double)(end - first) : 1;
    *result = (struct tr_evaluation){end - first, totals.loss / count, totals.correct / count};
    return TR_OK;
}
