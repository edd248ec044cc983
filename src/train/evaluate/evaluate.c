#include "train/evaluate/evaluate.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "job/feed/resident.h"
#include "train/evaluate/answer.h"

#include <string.h>

/* Distinct from the tags of steps in strategies, and those of traces. */
#define TAG_ACTIVATIONS (TR_COMM_TAG_MOST - 3)
#define TAG_SHARED      (TR_COMM_TAG_MOST - 4)

/* One batch arrives while another is computed. */
enum { SLOTS = 2 };

/* A slot for a batch in flight through the part; batch n has slot n % slots. */
struct slot {
    tr_pass *pass;
    tr_ticket *entry, *exit; /* activations from and to the neighbours */
    struct tr_staging in, out;
    int32_t *labels; /* [batch], or for its tokens or pixels: labels of its rows, copied because the
                        loader's are overwritten; NULL: none */
    float *targets;  /* [batch][outputs], likewise */
    int32_t *offset, *labelled; /* where the output is of tokens, else NULL: [batch + 1] where the tokens of
                                   an example begin, [batch] how many have a label */
    const int32_t *tokens;      /* of the rows, in the loader's batch; NULL with several slots */
    struct tr_pass_batch rows;
};

struct tr_evaluator {
    tr_device *device;
    const struct tr_job *job;
    struct tr_evaluation_part part;
    tr_loader *loader;
    tr_feed *feed;
    struct tr_shared_weights shared;
    int64_t batch;
    int slots;
    struct slot slot[SLOTS];
    int64_t rows;                   /* most of a batch: examples, or tokens where the output is of tokens */
    float *loss, *correct, *output; /* host, one batch */
};

/* ---- making ---- */

static bool ends_network(const tr_evaluator *evaluator)
{
    return evaluator->part.end_layer == evaluator->job->model->layer_count;
}

/* Messages of other ranks make progress between layers. */
static tr_status move_on(void *user)
{
    const tr_evaluator *evaluator = user;
    return tr_comm_progress(evaluator->part.comm);
}

static tr_status make_offsets(const tr_evaluator *evaluator, struct slot *slot)
{
    size_t batch = (size_t)evaluator->batch;
    if (!tr_job_is_of_tokens(evaluator->job)) return TR_OK;
    slot->offset = tr_alloc(batch + 1, sizeof *slot->offset);
    slot->labelled = tr_alloc_zero(batch, sizeof *slot->labelled);
    return slot->offset && slot->labelled ? TR_OK : TR_ENOMEM;
}

static tr_status make_passes(tr_evaluator *evaluator)
{
    const struct tr_evaluation_part *part = &evaluator->part;
    struct tr_pass_limits limits = {
        .examples = evaluator->batch,
        .tokens = tr_loader_tokens(evaluator->loader),
        .second_tokens = tr_loader_second_tokens(evaluator->loader),
        .microbatches = 1,
        .first_layer = part->first_layer,
        .end_layer = part->end_layer,
    };
    bool alone = part->previous < 0 && part->next < 0;
    evaluator->slots = alone ? 1 : SLOTS;
    for (int i = 0; i < evaluator->slots; i++) {
        tr_pass **pass = &evaluator->slot[i].pass;
        TR_TRY(tr_pass_create(evaluator->device, evaluator->job->model, &limits, pass));
        TR_TRY(make_offsets(evaluator, &evaluator->slot[i]));
        if (alone) continue;
        if (i == 0)
            TR_TRY(tr_shared_weights_make(part->comm, TAG_SHARED, evaluator->device, evaluator->job->model,
                                          *pass, part->rank_of, part->user, &evaluator->shared));
        tr_shared_weights_lend(&evaluator->shared, *pass);
        tr_pass_accompany(*pass, move_on, evaluator);
        struct tr_pass_port in = tr_pass_entry(*pass), out = tr_pass_exit(*pass);
        TR_TRY(tr_pass_stage(evaluator->device, &in, in.values, &limits, &evaluator->slot[i].in));
        TR_TRY(tr_pass_stage(evaluator->device, &out, out.values, &limits, &evaluator->slot[i].out));
    }
    return TR_OK;
}

/* The targets of a slot's rows, where the network ends. */
static tr_status make_truth(tr_evaluator *evaluator, const struct tr_source_info *info)
{
    size_t batch = (size_t)evaluator->batch;
    bool tokens = info->labels == TR_LABEL_TOKENS;
    bool pixels = info->labels == TR_LABEL_PIXELS;
    bool values = !tr_job_takes_classes(evaluator->job) && info->labels == TR_LABEL_VALUES;
    bool classes =
        tr_job_is_classification(evaluator->job) &&
        (info->labels == TR_LABEL_CLASS || tokens || pixels || values); /* the most probable ones */
    if (pixels) batch *= (size_t)tr_job_pixels(evaluator->job);
    if (tokens) batch = (size_t)tr_loader_tokens(evaluator->loader);
    for (int i = 0; i < evaluator->slots && ends_network(evaluator); i++) {
        struct slot *slot = &evaluator->slot[i];
        if (classes && !(slot->labels = tr_alloc(batch, sizeof *slot->labels))) return TR_ENOMEM;
        if (!values) continue;
        slot->targets = tr_alloc(batch * (size_t)info->values, sizeof *slot->targets);
        if (!slot->targets) return TR_ENOMEM;
    }
    return TR_OK;
}

static tr_status make_rows(tr_evaluator *evaluator)
{
    bool tokens = evaluator->job->model->output.sequence;
    evaluator->rows = tokens ? tr_loader_tokens(evaluator->loader) : evaluator->batch;
    size_t batch = (size_t)evaluator->rows;
    size_t outputs = (size_t)tr_shape_count(&evaluator->job->model->output);
    if (!ends_network(evaluator)) return TR_OK;
    evaluator->loss = tr_alloc(batch, sizeof *evaluator->loss);
    evaluator->correct = tr_alloc(batch, sizeof *evaluator->correct);
    evaluator->output = tr_alloc(batch * outputs, sizeof *evaluator->output);
    return evaluator->loss && evaluator->correct && evaluator->output ? TR_OK : TR_ENOMEM;
}

static tr_status make(tr_evaluator *evaluator, const tr_source *source, bool again)
{
    int64_t count = tr_source_info(source)->count, most = evaluator->job->train.evaluate_batch;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    struct tr_order order;
    evaluator->batch = most < count ? most : count;
    TR_TRY(tr_order_make(&order, count, evaluator->batch, TR_LAST_BATCH_KEEP, false, 0));
    options.end_step = order.steps_per_epoch;
    options.in_place = tr_resident_in_place(evaluator->device, source);
    TR_TRY(tr_loader_create(source, &order, &options, &evaluator->loader));
    TR_TRY(make_passes(evaluator));
    TR_TRY(make_truth(evaluator, tr_source_info(source)));
    const struct tr_feed_options feed = {
        .rows = evaluator->batch,
        .keep = again,
        .features = evaluator->part.first_layer == 0,
        .labels = ends_network(evaluator),
    };
    TR_TRY(tr_feed_create(evaluator->device, evaluator->job, source, &feed, &evaluator->feed));
    return make_rows(evaluator);
}

tr_status tr_evaluator_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              const struct tr_evaluation_part *part, bool again, tr_evaluator **out)
{
    tr_evaluator *evaluator = tr_alloc_zero(1, sizeof *evaluator);
    if (!evaluator) return TR_ENOMEM;
    *evaluator = (tr_evaluator){.device = device, .job = job};
    evaluator->part = (struct tr_evaluation_part){
        .end_layer = job->model->layer_count,
        .previous = -1,
        .next = -1,
    };
    if (part) evaluator->part = *part;
    tr_status status = make(evaluator, source, again);
    if (status != TR_OK) tr_evaluator_destroy(&evaluator);
    *out = evaluator;
    return status;
}

/* After a failure messages may be using the memory of the pass: then it is not freed. */
static void release_slot(tr_evaluator *evaluator, struct slot *slot)
{
    bool empty = tr_comm_cancel(evaluator->part.comm, &slot->entry);
    empty = tr_comm_cancel(evaluator->part.comm, &slot->exit) && empty;
    tr_free(slot->offset);
    tr_free(slot->labelled);
    if (!empty) return;
    tr_staging_release(&slot->in);
    tr_staging_release(&slot->out);
    tr_pass_destroy(&slot->pass);
}

void tr_evaluator_destroy(tr_evaluator **handle)
{
    tr_evaluator *evaluator = *handle;
    if (!evaluator) return;
    tr_device_finish(evaluator->device); /* after a failure it may be using the batch and the passes */
    tr_loader_destroy(&evaluator->loader);
    for (int i = 0; i < evaluator->slots; i++) {
        tr_free(evaluator->slot[i].labels);
        tr_free(evaluator->slot[i].targets);
        release_slot(evaluator, &evaluator->slot[i]);
    }
    if (tr_shared_weights_cancel(&evaluator->shared)) tr_shared_weights_release(&evaluator->shared);
    tr_feed_destroy(&evaluator->feed);
    tr_free(evaluator->loss);
    tr_free(evaluator->correct);
    tr_free(evaluator->output);
    tr_free(evaluator);
    *handle = NULL;
}

/* ---- running ---- */

static struct slot *slot_of(tr_evaluator *evaluator, int64_t number)
{
    return &evaluator->slot[number % evaluator->slots];
}

static tr_status wait_for(tr_evaluator *evaluator, tr_ticket **ticket)
{
    return *ticket ? tr_comm_wait(evaluator->part.comm, ticket) : TR_OK;
}

static tr_status receive(tr_evaluator *evaluator, struct slot *slot)
{
    const struct tr_evaluation_part *part = &evaluator->part;
    if (part->previous < 0) return TR_OK;
    return tr_comm_receive(part->comm, part->previous, TAG_ACTIVATIONS, slot->in.host,
                           (size_t)tr_pass_entry_floats(slot->pass, &slot->rows) * sizeof(float),
                           "activations", &slot->entry);
}

static tr_status send(tr_evaluator *evaluator, struct slot *slot)
{
    const struct tr_evaluation_part *part = &evaluator->part;
    if (part->next < 0) return TR_OK;
    return tr_comm_send_numbers(part->comm, part->next, TAG_ACTIVATIONS, slot->out.host,
                                (size_t)tr_pass_exit_floats(slot->pass, &slot->rows) * sizeof(float),
                                "activations", &slot->exit);
}

/* The place of the greatest. */
static int32_t greatest_of(const float *number, int32_t count)
{
    int32_t best = 0;
    for (int32_t k = 1; k < count; k++)
        if (number[k] > number[best]) best = k;
    return best;
}

/* Copies the targets of rows [begin, begin + rows) of the batch, which is overwritten. */
static void take_labels(const tr_evaluator *evaluator, struct slot *slot, const struct tr_batch *batch,
                        int64_t begin, int64_t rows)
{
    size_t values = (size_t)tr_metrics_targets(evaluator->job);
    if (slot->targets)
        memcpy(slot->targets, batch->targets + (size_t)begin * values,
               (size_t)rows * values * sizeof *slot->targets);
    if (slot->labels && slot->targets)
        for (int64_t i = 0; i < rows; i++)
            slot->labels[i] = greatest_of(slot->targets + i * (int64_t)values, (int32_t)values);
    else if (slot->labels && !slot->offset && tr_job_pixels(evaluator->job) == 0)
        memcpy(slot->labels, batch->labels + begin, (size_t)rows * sizeof *slot->labels);
    if (!slot->offset) return;
    const int32_t *offset = batch->offset + begin;
    slot->tokens = evaluator->slots == 1 ? batch->tokens + offset[0] : NULL;
    for (int64_t i = 0; i <= rows; i++) slot->offset[i] = offset[i] - offset[0];
    if (!slot->labels) return;
    memcpy(slot->labels, batch->labels + offset[0], (size_t)slot->offset[rows] * sizeof *slot->labels);
    for (int64_t i = 0; i < rows; i++)
        slot->labelled[i] = (int32_t)tr_labels_count(batch->labels + offset[i], offset[i + 1] - offset[i]);
}

/* Takes the examples from `at` on that are in one batch, and starts to receive their activations. */
static tr_status admit(tr_evaluator *evaluator, struct slot *slot, int64_t at, int64_t end)
{
    const struct tr_batch *batch;
    TR_TRY(wait_for(evaluator, &slot->exit));
    TR_TRY(tr_loader_get(evaluator->loader, at / evaluator->batch, &batch));
    int64_t begin = at % evaluator->batch, rows = batch->rows - begin;
    if (rows > end - at) rows = end - at;
    take_labels(evaluator, slot, batch, begin, rows);
    slot->rows = (struct tr_pass_batch){
        .examples = rows,
        .tokens =
            evaluator->job->model->input.sequence ? batch->offset[begin + rows] - batch->offset[begin] : 0,
        .second_tokens = batch->second ? batch->second_offset[begin + rows] - batch->second_offset[begin] : 0,
        .global_examples = rows,
    };
    TR_TRY(receive(evaluator, slot));
    TR_TRY(tr_feed_rows(evaluator->feed, slot->pass, batch, begin, begin + rows, 0, NULL));
    return tr_device_wait(evaluator->device); /* the next one may take the batch */
}

/* The answered class, and the rank of the right one. */
static void judge(const float *output, int32_t classes, struct tr_evaluated_row *row)
{
    row->answer = greatest_of(output, classes);
    row->place = tr_metrics_place(output, classes, row->label);
}

/* For each class of pixels: how many are of it and answered so, how many are answered so, and how many are
   of it. */
static void count_pixels(const struct tr_job *job, const int32_t *label, const float *output, float *counts)
{
    const int32_t classes = (int32_t)tr_job_width(job);
    for (int32_t k = 0; k < 3 * classes; k++) counts[k] = 0;
    for (int64_t p = 0; p < tr_job_pixels(job); p++, output += classes) {
        struct tr_evaluated_row row = {.label = label[p]};
        if (label[p] < 0) continue;
        judge(output, classes, &row);
        counts[label[p]] += row.answer == label[p];
        counts[classes + row.answer]++;
        counts[2 * classes + label[p]]++;
    }
}

static void keep_pixels(const tr_evaluator *evaluator, const struct slot *slot, float *counts)
{
    const struct tr_job *job = evaluator->job;
    const int64_t pixels = tr_job_pixels(job), outputs = pixels * tr_job_width(job);
    for (int64_t i = 0; i < slot->rows.examples; i++)
        count_pixels(job, slot->labels + i * pixels, evaluator->output + i * outputs,
                     counts + i * tr_metrics_row(job));
}

static void keep_answers(const tr_evaluator *evaluator, const struct slot *slot, float *answers)
{
    int64_t outputs = tr_shape_count(&evaluator->job->model->output);
    int64_t values = tr_metrics_targets(evaluator->job);
    size_t bytes = (size_t)outputs * sizeof *answers;
    if (tr_job_pixels(evaluator->job) > 0) {
        keep_pixels(evaluator, slot, answers);
        return;
    }
    for (int64_t i = 0; i < slot->rows.examples; i++) {
        memcpy(answers, evaluator->output + i * outputs, bytes);
        tr_answer(evaluator->job, 1, answers);
        answers += outputs;
        if (values == 0) continue;
        memcpy(answers, slot->targets + i * values, (size_t)values * sizeof *answers);
        answers += values;
    }
}

/* The rows of the output. */
static int64_t rows_of(const tr_evaluator *evaluator, const struct slot *slot)
{
    if (slot->offset) return slot->rows.tokens;
    return slot->rows.examples * tr_loss_labels(&evaluator->job->model->loss);
}

/* The figures of example `i`: its own, or the sum over its tokens. */
static struct tr_evaluated_row figures_of(const tr_evaluator *evaluator, const struct slot *slot, int64_t i)
{
    if (!slot->offset) {
        const int64_t pixels = slot->labels ? tr_job_pixels(evaluator->job) : 0;
        const bool labelled = pixels == 0 || tr_labels_count(slot->labels + i * pixels, pixels) > 0;
        return (struct tr_evaluated_row){evaluator->loss[i], evaluator->correct[i], -1, -1, -1, labelled};
    }
    double loss = 0, correct = 0;
    for (int64_t t = slot->offset[i]; t < slot->offset[i + 1]; t++) {
        loss += (double)evaluator->loss[t];
        correct += (double)evaluator->correct[t];
    }
    return (struct tr_evaluated_row){(float)loss, (float)correct, -1, -1, -1, (float)slot->labelled[i]};
}

/* Results of the last computation: the output, and the figures of its rows. */
static tr_status fetch(tr_evaluator *evaluator, const struct slot *slot, struct tr_evaluated_row *rows,
                       float *answers)
{
    tr_device *device = evaluator->device;
    int64_t examples = slot->rows.examples, count = slot->offset ? slot->rows.tokens : examples;
    const int64_t pixels = tr_job_pixels(evaluator->job);
    size_t outputs = (size_t)(count * tr_shape_count(&evaluator->job->model->output));
    size_t bytes = (size_t)count * sizeof(float);
    TR_TRY(tr_device_to_host(device, evaluator->output, tr_pass_output(slot->pass), outputs * sizeof(float)));
    if (pixels > 0 && slot->labels) /* as they lie over what the network saw */
        TR_TRY(tr_device_to_host(device, slot->labels, tr_pass_label(slot->pass),
                                 (size_t)(examples * pixels) * sizeof *slot->labels));
    if (!rows) return tr_device_wait(device);
    TR_TRY(tr_pass_loss(slot->pass, &slot->rows));
    TR_TRY(tr_device_to_host(device, evaluator->loss, tr_pass_loss_rows(slot->pass), bytes));
    TR_TRY(tr_device_to_host(device, evaluator->correct, tr_pass_correct_rows(slot->pass), bytes));
    TR_TRY(tr_device_wait(device));
    int64_t width = tr_shape_count(&evaluator->job->model->output);
    for (int64_t i = 0; i < examples; i++) {
        rows[i] = figures_of(evaluator, slot, i);
        if (!slot->labels || slot->offset || pixels > 0) continue;
        rows[i].label = slot->labels[i];
        judge(evaluator->output + i * width, (int32_t)width, &rows[i]);
    }
    if (answers) keep_answers(evaluator, slot, answers);
    return TR_OK;
}

static tr_status compute(tr_evaluator *evaluator, struct slot *slot, const float *parameters,
                         struct tr_evaluated_row *rows, float *answers)
{
    TR_TRY(wait_for(evaluator, &slot->entry));
    if (slot->in.data)
        TR_TRY(tr_staging_to_device(&slot->in, 0, tr_pass_entry_floats(slot->pass, &slot->rows)));
    TR_TRY(tr_pass_forward(slot->pass, &slot->rows, parameters, NULL, 0));
    if (ends_network(evaluator)) return fetch(evaluator, slot, rows, answers);
    TR_TRY(tr_staging_to_host(&slot->out, 0, tr_pass_exit_floats(slot->pass, &slot->rows)));
    TR_TRY(tr_device_wait(evaluator->device));
    return send(evaluator, slot);
}

static tr_status tell(const tr_evaluator *evaluator, const struct slot *slot, int64_t first,
                      tr_output_listener listener, void *user)
{
    const struct tr_evaluated_part part = {first,
                                           slot->rows.examples,
                                           rows_of(evaluator, slot),
                                           evaluator->output,
                                           slot->labels,
                                           slot->targets,
                                           slot->offset,
                                           slot->tokens};
    return listener(user, &part);
}

tr_status tr_evaluator_run(tr_evaluator *evaluator, const float *parameters, int64_t first, int64_t end,
                           tr_output_listener listener, void *user, struct tr_evaluated_row *rows,
                           float *answers)
{
    int64_t admitted = first, taken = 0;
    int64_t width = tr_metrics_row(evaluator->job);
    TR_TRY(tr_shared_weights_hand(&evaluator->shared, parameters));
    for (int64_t at = first, i = 0; at < end; i++) {
        for (; admitted < end && taken < i + evaluator->slots; taken++) {
            struct slot *next = slot_of(evaluator, taken);
            TR_TRY(admit(evaluator, next, admitted, end));
            admitted += next->rows.examples;
        }
        struct slot *slot = slot_of(evaluator, i);
        TR_TRY(compute(evaluator, slot, parameters, rows ? rows + (at - first) : NULL,
                       answers ? answers + (at - first) * width : NULL));
        if (listener) TR_TRY(tell(evaluator, slot, at, listener, user));
        at += slot->rows.examples;
    }
    for (int i = 0; i < evaluator->slots; i++) TR_TRY(wait_for(evaluator, &evaluator->slot[i].exit));
    return tr_shared_weights_wait(&evaluator->shared);
}

struct tr_evaluation tr_evaluation_of(const struct tr_evaluated_row *rows, int64_t count)
{
    struct tr_evaluation sum = {count, 0, 0};
    double labels = 0;
    for (int64_t i = 0; i < count; i++) {
        sum.loss += (double)rows[i].loss;
        sum.accuracy += (double)rows[i].correct;
        labels += (double)rows[i].labels;
    }
    sum.loss /= labels > 0 ? labels : 1;
    sum.accuracy /= labels > 0 ? labels : 1;
    return sum;
}
