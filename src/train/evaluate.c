#include "train/evaluate.h"

#include "base/alloc.h"
#include "base/fail.h"

/* Beside those of a step in strategies, which no evaluation meets, and those of traces. */
#define TAG_ACTIVATIONS (TR_COMM_TAG_MOST - 3)

/* One batch comes in while another one is computed. */
enum { FLIGHTS = 2 };

/* A batch on its way through the part. */
struct flight {
    tr_pass *pass;
    tr_ticket *entry, *exit; /* activations from and to the neighbours */
    const int32_t *labels;   /* of its rows, until the next one is taken; or NULL */
    struct tr_pass_batch rows;
};

struct tr_evaluator {
    tr_device *device;
    const struct tr_job *job;
    struct tr_evaluation_part part;
    tr_loader *loader;
    tr_feed *feed;
    int64_t batch;
    int flights;
    struct flight flight[FLIGHTS];
    float *loss, *correct, *output; /* host, one batch */
};

/* ---- making ---- */

static bool ends_network(const tr_evaluator *evaluator)
{
    return evaluator->part.end_layer == evaluator->job->model->layer_count;
}

/* Messages of other ranks move on between layers. */
static tr_status move_on(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    const tr_evaluator *evaluator = user;
    (void)layer, (void)output, (void)count;
    return tr_comm_progress(evaluator->part.comm);
}

static tr_status make_passes(tr_evaluator *evaluator)
{
    const struct tr_evaluation_part *part = &evaluator->part;
    struct tr_pass_limits limits = {
        .examples = evaluator->batch,
        .tokens = tr_loader_tokens(evaluator->loader),
        .microbatches = 1,
        .first_layer = part->first_layer,
        .end_layer = part->end_layer,
    };
    bool alone = part->previous < 0 && part->next < 0;
    evaluator->flights = alone ? 1 : FLIGHTS;
    for (int i = 0; i < evaluator->flights; i++) {
        tr_pass **pass = &evaluator->flight[i].pass;
        TR_TRY(tr_pass_create(evaluator->device, evaluator->job->model, &limits, pass));
        if (!alone) tr_pass_watch(*pass, move_on, evaluator);
    }
    return TR_OK;
}

static tr_status make_rows(tr_evaluator *evaluator)
{
    size_t batch = (size_t)evaluator->batch;
    size_t outputs = (size_t)tr_shape_count(&evaluator->job->model->output);
    if (!ends_network(evaluator)) return TR_OK;
    evaluator->loss = tr_alloc(batch, sizeof *evaluator->loss);
    evaluator->correct = tr_alloc(batch, sizeof *evaluator->correct);
    evaluator->output = tr_alloc(batch * outputs, sizeof *evaluator->output);
    return evaluator->loss && evaluator->correct && evaluator->output ? TR_OK : TR_ENOMEM;
}

static tr_status make(tr_evaluator *evaluator, const tr_source *source)
{
    int64_t count = tr_source_info(source)->count, most = evaluator->job->train.evaluate_batch;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    struct tr_order order;
    evaluator->batch = most < count ? most : count;
    TR_TRY(tr_order_make(&order, count, evaluator->batch, TR_LAST_BATCH_KEEP, false, 0));
    options.end_step = order.steps_per_epoch;
    TR_TRY(tr_loader_create(source, &order, &options, &evaluator->loader));
    TR_TRY(make_passes(evaluator));
    TR_TRY(
        tr_feed_create(evaluator->device, evaluator->job, source, evaluator->batch, false, &evaluator->feed));
    return make_rows(evaluator);
}

tr_status tr_evaluator_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              const struct tr_evaluation_part *part, tr_evaluator **out)
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
    tr_status status = make(evaluator, source);
    if (status != TR_OK) tr_evaluator_destroy(&evaluator);
    *out = evaluator;
    return status;
}

/* After a failure there may be messages, which may still use the memory of the pass: then it is left. */
static void land(tr_evaluator *evaluator, struct flight *flight)
{
    bool empty = tr_comm_cancel(evaluator->part.comm, &flight->entry);
    empty = tr_comm_cancel(evaluator->part.comm, &flight->exit) && empty;
    if (empty) tr_pass_destroy(&flight->pass);
}

void tr_evaluator_destroy(tr_evaluator **handle)
{
    tr_evaluator *evaluator = *handle;
    if (!evaluator) return;
    tr_loader_destroy(&evaluator->loader);
    for (int i = 0; i < evaluator->flights; i++) land(evaluator, &evaluator->flight[i]);
    tr_feed_destroy(&evaluator->feed);
    tr_free(evaluator->loss);
    tr_free(evaluator->correct);
    tr_free(evaluator->output);
    tr_free(evaluator);
    *handle = NULL;
}

/* ---- running ---- */

static struct flight *flight_of(tr_evaluator *evaluator, int64_t number)
{
    return &evaluator->flight[number % evaluator->flights];
}

static tr_status wait_for(tr_evaluator *evaluator, tr_ticket **ticket)
{
    return *ticket ? tr_comm_wait(evaluator->part.comm, ticket) : TR_OK;
}

static tr_status receive(tr_evaluator *evaluator, struct flight *flight)
{
    const struct tr_evaluation_part *part = &evaluator->part;
    if (part->previous < 0) return TR_OK;
    struct tr_pass_port port = tr_pass_entry(flight->pass);
    return tr_comm_receive(part->comm, part->previous, TAG_ACTIVATIONS, port.values,
                           tr_pass_port_bytes(&port, &flight->rows), "activations", &flight->entry);
}

static tr_status send(tr_evaluator *evaluator, struct flight *flight)
{
    const struct tr_evaluation_part *part = &evaluator->part;
    if (part->next < 0) return TR_OK;
    struct tr_pass_port port = tr_pass_exit(flight->pass);
    return tr_comm_send(part->comm, part->next, TAG_ACTIVATIONS, port.values,
                        tr_pass_port_bytes(&port, &flight->rows), "activations", &flight->exit);
}

/* Takes the examples from `at` on that are in one batch, and lets their activations come. */
static tr_status admit(tr_evaluator *evaluator, struct flight *flight, int64_t at, int64_t end)
{
    const struct tr_batch *batch;
    TR_TRY(wait_for(evaluator, &flight->exit));
    TR_TRY(tr_loader_get(evaluator->loader, at / evaluator->batch, &batch));
    int64_t begin = at % evaluator->batch, rows = batch->rows - begin;
    if (rows > end - at) rows = end - at;
    flight->labels = batch->labels ? batch->labels + begin : NULL;
    flight->rows = (struct tr_pass_batch){
        .examples = rows,
        .tokens =
            evaluator->job->model->input.sequence ? batch->offset[begin + rows] - batch->offset[begin] : 0,
        .global_examples = rows,
    };
    TR_TRY(receive(evaluator, flight));
    TR_TRY(tr_feed_rows(evaluator->feed, flight->pass, batch, begin, begin + rows, 0, NULL));
    return tr_device_wait(evaluator->device); /* the next one may take the batch */
}

/* Of what was computed last: the output, and the figures of its rows. */
static tr_status fetch(tr_evaluator *evaluator, const struct flight *flight, struct tr_evaluated_row *rows)
{
    tr_device *device = evaluator->device;
    int64_t examples = flight->rows.examples;
    size_t outputs = (size_t)(examples * tr_shape_count(&evaluator->job->model->output));
    size_t bytes = (size_t)examples * sizeof(float);
    TR_TRY(
        tr_device_to_host(device, evaluator->output, tr_pass_output(flight->pass), outputs * sizeof(float)));
    if (!rows) return tr_device_wait(device);
    TR_TRY(tr_pass_loss(flight->pass, &flight->rows));
    TR_TRY(tr_device_to_host(device, evaluator->loss, tr_pass_loss_rows(flight->pass), bytes));
    TR_TRY(tr_device_to_host(device, evaluator->correct, tr_pass_correct_rows(flight->pass), bytes));
    TR_TRY(tr_device_wait(device));
    for (int64_t i = 0; i < examples; i++)
        rows[i] = (struct tr_evaluated_row){evaluator->loss[i], evaluator->correct[i]};
    return TR_OK;
}

static tr_status compute(tr_evaluator *evaluator, struct flight *flight, const float *parameters,
                         struct tr_evaluated_row *rows)
{
    TR_TRY(wait_for(evaluator, &flight->entry));
    TR_TRY(tr_pass_forward(flight->pass, &flight->rows, parameters, NULL, 0));
    if (ends_network(evaluator)) return fetch(evaluator, flight, rows);
    TR_TRY(tr_device_wait(evaluator->device));
    return send(evaluator, flight);
}

tr_status tr_evaluator_run(tr_evaluator *evaluator, const float *parameters, int64_t first, int64_t end,
                           tr_output_listener listener, void *user, struct tr_evaluated_row *rows)
{
    int64_t admitted = first, taken = 0;
    for (int64_t at = first, i = 0; at < end; i++) {
        for (; admitted < end && taken < i + evaluator->flights; taken++) {
            struct flight *next = flight_of(evaluator, taken);
            TR_TRY(admit(evaluator, next, admitted, end));
            admitted += next->rows.examples;
        }
        struct flight *flight = flight_of(evaluator, i);
        TR_TRY(compute(evaluator, flight, parameters, rows ? rows + (at - first) : NULL));
        if (listener) TR_TRY(listener(user, at, flight->rows.examples, evaluator->output, flight->labels));
        at += flight->rows.examples;
    }
    for (int i = 0; i < evaluator->flights; i++) TR_TRY(wait_for(evaluator, &evaluator->flight[i].exit));
    return TR_OK;
}

struct tr_evaluation tr_evaluation_of(const struct tr_evaluated_row *rows, int64_t count)
{
    struct tr_evaluation sum = {count, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        sum.loss += (double)rows[i].loss;
        sum.accuracy += (double)rows[i].correct;
    }
    sum.loss /= count > 0 ? (double)count : 1;
    sum.accuracy /= count > 0 ? (double)count : 1;
    return sum;
}
