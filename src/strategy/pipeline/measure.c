#include "strategy/pipeline/measure.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "job/feed/feed.h"
#include "job/feed/resident.h"
#include "job/file/augmentation.h"
#include "job/step/rows.h"

#include <math.h>

#define ROUNDS 3 /* the first is a warm-up; the fastest of the others counts */

/* Makes one range at a time, with the initial parameters of only that range, so that the measuring rank
 * need not hold the whole network.
 */
struct measurement {
    tr_strategy *strategy;
    tr_loader *loader;
    const struct tr_batch *data;
    tr_feed *feed;
    struct tr_rows rows;
    int64_t per_unit; /* microbatches of a unit */
    float *from, *to; /* device: inputs and outputs of the range */
    /* Of the range: */
    int64_t begin, end; /* floats of the arena */
    bool last;          /* it ends with the network */
    tr_pass *pass;
    float *lent; /* device: substitutes for weights that are shared with another range */
    struct tr_pass_batch batch;
    tr_variables *variables;
    float *gradient; /* device: an arena and the sums */
    struct pipeline_cost cost;
};

/* ---- making ---- */

/* Resources that all ranges need. */
static tr_status make(struct measurement *m)
{
    const struct tr_job *job = m->strategy->job;
    struct tr_order order;
    TR_TRY(tr_job_order(job, &order));
    struct tr_loader_options options = {
        .microbatches = job->train.microbatches,
        .end_microbatch = m->per_unit,
        .end_step = 1,
        .in_place = tr_resident_in_place(m->strategy->device, job->source[TR_SET_TRAIN]),
        .mixes = tr_augmentation_mixes(&job->input.augment),
        .mix_key = tr_rng_key_make((uint64_t)job->file.seed, TR_RNG_AUGMENT),
    };
    TR_TRY(tr_loader_create(job->source[TR_SET_TRAIN], &order, &options, &m->loader));
    TR_TRY(tr_loader_get(m->loader, 0, &m->data));
    TR_TRY(tr_rows_create(&m->rows, m->per_unit));
    const struct tr_feed_options feed = {
        .rows = m->data->rows, .augment = true, .features = true, .labels = true};
    return tr_feed_create(m->strategy->device, job, job->source[TR_SET_TRAIN], &feed, &m->feed);
}

static tr_status make_numbers(struct measurement *m)
{
    tr_device *device = m->strategy->device;
    const struct tr_job *job = m->strategy->job;
    int64_t floats = job->model->arena_floats + TR_PASS_SUMS, sums = m->last ? TR_PASS_SUMS : 0;
    struct tr_variables_part part = {m->begin, m->end, m->begin, m->end};
    TR_TRY(tr_device_alloc(device, (size_t)floats * sizeof(float), (void **)&m->gradient));
    struct tr_op_fill zero = {m->end - m->begin + sums, 0, m->gradient + m->begin};
    TR_TRY(tr_device_fill(device, &zero));
    TR_TRY(tr_variables_create_part(device, job->model, &job->optimizer, &part, NULL, &m->variables));
    TR_TRY(tr_variables_initialize(m->variables, (uint64_t)job->file.seed));
    TR_TRY(tr_variables_begin_ema(m->variables));
    return tr_variables_begin_step(m->variables, 0);
}

/* Zeros for weights that other ranges lend. */
static tr_status make_lent(struct measurement *m)
{
    tr_device *device = m->strategy->device;
    struct tr_pass_tie tie;
    int64_t floats = 0;
    for (int i = 0; tr_pass_tie(m->pass, i, &tie); i++)
        if (!tie.lends && tie.floats > floats) floats = tie.floats;
    if (floats == 0) return TR_OK;
    TR_TRY(tr_device_alloc(device, (size_t)floats * sizeof(float), (void **)&m->lent));
    struct tr_op_fill zero = {floats, 0, m->lent};
    TR_TRY(tr_device_fill(device, &zero));
    for (int i = 0; tr_pass_tie(m->pass, i, &tie); i++)
        if (!tie.lends) tr_pass_lend(m->pass, tie.borrower, m->lent);
    return TR_OK;
}

/* And for the contributions of borrowers in other ranges. */
static tr_status leave_nothing(struct measurement *m)
{
    struct tr_pass_tie tie;
    for (int i = 0; tr_pass_tie(m->pass, i, &tie); i++) {
        struct tr_op_fill zero = {m->batch.microbatches * tie.floats, 0, tie.leaves};
        if (tie.lends) TR_TRY(tr_device_fill(m->strategy->device, &zero));
    }
    return TR_OK;
}

static tr_status make_pass(struct measurement *m, int first_layer, int end_layer)
{
    const struct tr_job *job = m->strategy->job;
    const struct tr_batch *data = m->data;
    struct tr_step_scalars *scalars = tr_variables_scalars(m->variables);
    tr_rows_describe(&m->rows, job, data, 0, m->per_unit, data->global_rows, data->global_labels, scalars,
                     &m->batch);
    struct tr_pass_limits limits = {
        .training = true,
        .examples = m->batch.examples,
        .tokens = m->batch.tokens,
        .second_tokens = m->batch.second_tokens,
        .microbatches = m->batch.microbatches,
        .first_layer = first_layer,
        .end_layer = end_layer,
    };
    TR_TRY(tr_pass_create(m->strategy->device, job->model, &limits, &m->pass));
    TR_TRY(make_lent(m));
    return tr_feed_rows(m->feed, m->pass, data, 0, m->batch.examples, (uint64_t)job->file.seed, scalars);
}

static void release_range(struct measurement *m)
{
    tr_device_finish(m->strategy->device); /* after a failure it may be using what follows */
    tr_device_free(m->strategy->device, m->gradient);
    tr_device_free(m->strategy->device, m->lent);
    m->gradient = m->lent = NULL;
    tr_variables_destroy(&m->variables);
    tr_pass_destroy(&m->pass);
}

static void release(struct measurement *m)
{
    release_range(m);
    tr_device_free(m->strategy->device, m->from);
    tr_device_free(m->strategy->device, m->to);
    tr_rows_release(&m->rows);
    tr_feed_destroy(&m->feed);
    tr_loader_destroy(&m->loader);
}

/* ---- measuring ---- */

/* Waits for all work before the time is taken. */
static tr_status since(struct measurement *m, double *start, double *seconds)
{
    TR_TRY(tr_device_wait(m->strategy->device));
    double now = tr_clock_seconds();
    *seconds = now - *start;
    *start = now;
    return TR_OK;
}

static void keep_least(double *least, double seconds)
{
    if (seconds < *least) *least = seconds;
}

static int64_t port_floats(const struct measurement *m, const struct tr_pass_port *port)
{
    return (port->sequence ? m->batch.tokens : m->batch.examples) * port->width;
}

/* Feeds in the outputs of the last range. */
static tr_status enter(struct measurement *m)
{
    struct tr_pass_port port = tr_pass_entry(m->pass);
    struct tr_op_scale copy = {port_floats(m, &port), 1, m->from, port.values};
    return m->from ? tr_device_scale(m->strategy->device, &copy) : TR_OK;
}

/* Keeps the range's outputs for the next one; they also substitute for the returning gradient, having as
   many zeros and small values. */
static tr_status leave(struct measurement *m)
{
    tr_device *device = m->strategy->device;
    struct tr_pass_port port = tr_pass_exit(m->pass);
    int64_t floats = port_floats(m, &port);
    if (!m->to) TR_TRY(tr_device_alloc(device, (size_t)floats * sizeof(float), (void **)&m->to));
    struct tr_op_scale copy = {floats, 1, port.values, m->to},
                       back = {floats, 0x1p-10f, port.values, port.gradient};
    TR_TRY(tr_device_scale(device, &copy));
    return port.gradient ? tr_device_scale(device, &back) : TR_OK;
}

/* A unit forward and back. */
static tr_status run_unit(struct measurement *m, double *seconds)
{
    const float *parameters = tr_variables_arena(m->variables, TR_ARENA_PARAMETERS);
    float *gradient = m->gradient + m->begin;
    double start, back;
    TR_TRY(enter(m));
    TR_TRY(tr_device_wait(m->strategy->device));
    start = tr_clock_seconds();
    TR_TRY(tr_pass_forward(m->pass, &m->batch, parameters, gradient, 0));
    if (m->last) TR_TRY(tr_pass_loss(m->pass, &m->batch));
    TR_TRY(since(m, &start, seconds));
    if (!m->last) TR_TRY(leave(m));
    TR_TRY(leave_nothing(m));
    TR_TRY(since(m, &start, &back));
    TR_TRY(tr_pass_backward(m->pass, &m->batch, parameters, gradient, 0));
    TR_TRY(since(m, &start, &back));
    *seconds += back;
    return TR_OK;
}

static tr_status run_memory(struct measurement *m)
{
    float *gradient = m->gradient + m->begin;
    double seconds, start = tr_clock_seconds();
    struct tr_op_add add = {m->end - m->begin, gradient, gradient, gradient};
    TR_TRY(tr_device_add(m->strategy->device, &add));
    TR_TRY(since(m, &start, &seconds));
    keep_least(&m->cost.add, seconds);
    TR_TRY(tr_variables_update(m->variables, gradient, m->begin, m->end));
    TR_TRY(since(m, &start, &seconds));
    keep_least(&m->cost.update, seconds);
    return TR_OK;
}

/* Makes, measures and releases a range; its outputs stay. */
static tr_status run_range(struct measurement *m, int first_layer, int end_layer)
{
    const struct tr_model *model = m->strategy->job->model;
    tr_status status;
    m->last = end_layer == model->layer_count;
    m->cost = (struct pipeline_cost){INFINITY, INFINITY, INFINITY};
    tr_pass_arena(model, first_layer, end_layer, &m->begin, &m->end);
    TR_TRY_GOTO(make_numbers(m), out);
    TR_TRY_GOTO(make_pass(m, first_layer, end_layer), out);
    for (int i = 0; i < ROUNDS; i++) {
        double seconds;
        TR_TRY_GOTO(run_unit(m, &seconds), out);
        if (i > 0) keep_least(&m->cost.flow, seconds);
        TR_TRY_GOTO(run_memory(m), out);
    }
out:
    release_range(m);
    tr_device_free(m->strategy->device, m->from);
    m->from = m->to;
    m->to = NULL;
    return status;
}

tr_status pipeline_measure(tr_strategy *strategy, int64_t per_unit, const int *bound, int count,
                           struct pipeline_cost *cost)
{
    struct measurement m = {.strategy = strategy, .per_unit = per_unit};
    tr_status status = make(&m);
    for (int k = 0; k < count && status == TR_OK; k++) {
        status = run_range(&m, bound[k], bound[k + 1]);
        cost[k] = m.cost;
    }
    release(&m);
    return status;
}
