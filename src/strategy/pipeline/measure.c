#include "strategy/pipeline/measure.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "job/feed.h"
#include "job/rows.h"

#include <math.h>

#define ROUNDS 3 /* the first warms up; the best of the others counts */

struct measurement {
    tr_strategy *strategy;
    int count;
    const int *bound;
    tr_loader *loader;
    tr_feed *feed;
    tr_pass **pass; /* [count] */
    struct tr_rows rows;
    struct tr_pass_batch batch;
    tr_variables *variables;     /* copies, to be updated */
    float *gradient;             /* device: an arena and the sums */
    double *flow, *add, *update; /* [count] seconds of a unit, of adding two of its gradients, of an update */
};

/* ---- making ---- */

static tr_status make_passes(struct measurement *m, const struct tr_batch *batch, int64_t per_unit)
{
    tr_device *device = m->strategy->device;
    const struct tr_job *job = m->strategy->job;
    struct tr_step_scalars *scalars = tr_variables_scalars(m->strategy->variables);
    TR_TRY(tr_rows_create(&m->rows, per_unit));
    tr_rows_describe(&m->rows, job, batch, 0, per_unit, batch->global_rows, scalars, &m->batch);
    TR_TRY(tr_feed_create(device, job, job->source[TR_SET_TRAIN], m->batch.examples, true, &m->feed));
    for (int k = 0; k < m->count; k++) {
        struct tr_pass_limits limits = {
            .training = true,
            .examples = m->batch.examples,
            .tokens = m->batch.tokens,
            .microbatches = m->batch.microbatches,
            .first_layer = m->bound[k],
            .end_layer = m->bound[k + 1],
        };
        TR_TRY(tr_pass_create(device, job->model, &limits, &m->pass[k]));
        TR_TRY(tr_feed_rows(m->feed, m->pass[k], batch, 0, m->batch.examples, (uint64_t)job->file.seed,
                            scalars));
    }
    return tr_device_wait(device);
}

static tr_status make_numbers(struct measurement *m)
{
    tr_device *device = m->strategy->device;
    const struct tr_job *job = m->strategy->job;
    int64_t floats = job->model->arena_floats;
    const float *parameters = tr_variables_arena(m->strategy->variables, TR_ARENA_PARAMETERS);
    TR_TRY(tr_device_alloc(device, (size_t)(floats + TR_PASS_SUMS) * sizeof(float), (void **)&m->gradient));
    struct tr_op_fill zero = {floats + TR_PASS_SUMS, 0, m->gradient};
    TR_TRY(tr_device_fill(device, &zero));
    TR_TRY(tr_variables_create(device, job->model, &job->optimizer, NULL, &m->variables));
    struct tr_op_scale copy = {floats, 1, parameters, tr_variables_arena(m->variables, TR_ARENA_PARAMETERS)};
    TR_TRY(tr_device_scale(device, &copy));
    float *average = tr_variables_arena(m->variables, TR_ARENA_EMA);
    if (!average) return TR_OK;
    copy.y = average;
    return tr_device_scale(device, &copy);
}

static tr_status make(struct measurement *m, int64_t step, int64_t per_unit)
{
    const struct tr_job *job = m->strategy->job;
    size_t count = (size_t)m->count;
    struct tr_order order;
    const struct tr_batch *batch;
    m->pass = tr_alloc_zero(count, sizeof *m->pass);
    m->flow = tr_alloc(3 * count, sizeof *m->flow);
    if (!m->pass || !m->flow) return TR_ENOMEM;
    m->add = m->flow + count;
    m->update = m->add + count;
    TR_TRY(tr_job_order(job, &order));
    struct tr_loader_options options = {
        .microbatches = job->train.microbatches,
        .end_microbatch = per_unit,
        .end_step = step + 1,
    };
    TR_TRY(tr_loader_create(job->source[TR_SET_TRAIN], &order, &options, &m->loader));
    TR_TRY(tr_loader_get(m->loader, step, &batch));
    TR_TRY(make_passes(m, batch, per_unit));
    return make_numbers(m);
}

static void release(struct measurement *m)
{
    tr_device_free(m->strategy->device, m->gradient);
    tr_variables_destroy(&m->variables);
    for (int k = 0; m->pass && k < m->count; k++) tr_pass_destroy(&m->pass[k]);
    tr_rows_release(&m->rows);
    tr_feed_destroy(&m->feed);
    tr_loader_destroy(&m->loader);
    tr_free(m->pass);
    tr_free(m->flow);
}

/* ---- measuring ---- */

/* What is under way is done when the time is taken. */
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

/* What leaves range k comes to its neighbour: activations to the next, their gradient to the one before. */
static tr_status hand_over(struct measurement *m, int from, int to)
{
    struct tr_pass_port exit = tr_pass_exit(m->pass[from < to ? from : to]);
    struct tr_pass_port entry = tr_pass_entry(m->pass[from < to ? to : from]);
    int64_t rows = exit.sequence ? m->batch.tokens : m->batch.examples;
    struct tr_op_scale copy = {rows * exit.width, 1, exit.values, entry.values};
    if (from > to) copy = (struct tr_op_scale){rows * exit.width, 1, entry.gradient, exit.gradient};
    return copy.y ? tr_device_scale(m->strategy->device, &copy) : TR_OK;
}

/* A unit forward and back. */
static tr_status run_unit(struct measurement *m, double *seconds)
{
    tr_strategy *strategy = m->strategy;
    const float *parameters = tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS);
    for (int k = 0; k < m->count; k++) {
        int64_t begin, end;
        tr_pass_arena(strategy->job->model, m->bound[k], m->bound[k + 1], &begin, &end);
        double start = tr_clock_seconds();
        TR_TRY(tr_pass_forward(m->pass[k], &m->batch, parameters, m->gradient + begin, 0));
        if (k == m->count - 1) TR_TRY(tr_pass_loss(m->pass[k], &m->batch));
        TR_TRY(since(m, &start, &seconds[k]));
        if (k < m->count - 1) TR_TRY(hand_over(m, k, k + 1));
    }
    for (int k = m->count - 1; k >= 0; k--) {
        int64_t begin, end;
        double back;
        tr_pass_arena(strategy->job->model, m->bound[k], m->bound[k + 1], &begin, &end);
        TR_TRY(tr_device_wait(strategy->device));
        double start = tr_clock_seconds();
        TR_TRY(tr_pass_backward(m->pass[k], &m->batch, parameters, m->gradient + begin, 0));
        TR_TRY(since(m, &start, &back));
        seconds[k] += back;
        if (k > 0) TR_TRY(hand_over(m, k, k - 1));
    }
    return TR_OK;
}

static tr_status run_memory(struct measurement *m)
{
    tr_device *device = m->strategy->device;
    for (int k = 0; k < m->count; k++) {
        int64_t begin, end;
        double seconds, start = tr_clock_seconds();
        tr_pass_arena(m->strategy->job->model, m->bound[k], m->bound[k + 1], &begin, &end);
        struct tr_op_add add = {end - begin, m->gradient + begin, m->gradient + begin, m->gradient + begin};
        TR_TRY(tr_device_add(device, &add));
        TR_TRY(since(m, &start, &seconds));
        keep_least(&m->add[k], seconds);
        TR_TRY(tr_variables_update(m->variables, m->gradient, begin, end));
        TR_TRY(since(m, &start, &seconds));
        keep_least(&m->update[k], seconds);
    }
    return TR_OK;
}

static tr_status run(struct measurement *m)
{
    double *seconds = tr_alloc((size_t)m->count, sizeof *seconds);
    tr_status status = seconds ? tr_variables_begin_step(m->variables, 0) : TR_ENOMEM;
    for (int k = 0; k < m->count; k++) m->flow[k] = m->add[k] = m->update[k] = INFINITY;
    for (int i = 0; i < ROUNDS && status == TR_OK; i++) {
        status = run_unit(m, seconds);
        for (int k = 0; k < m->count && status == TR_OK && i > 0; k++) keep_least(&m->flow[k], seconds[k]);
        if (status == TR_OK) status = run_memory(m);
    }
    tr_free(seconds);
    return status;
}

tr_status pipeline_measure(tr_strategy *strategy, int64_t step, int replicas, const int *bound, int count,
                           double *cost)
{
    const struct tr_train_options *train = &strategy->job->train;
    struct measurement m = {.strategy = strategy, .count = count, .bound = bound};
    int64_t share = (train->microbatches + replicas - 1) / replicas;
    int64_t per_unit = train->pass > 0 && train->pass < share ? train->pass : train->pass > 0 ? share : 1;
    double units = (double)share / (double)per_unit;
    tr_status status = tr_variables_begin_step(strategy->variables, step);
    if (status == TR_OK) status = make(&m, step, per_unit);
    if (status == TR_OK) status = run(&m);
    for (int k = 0; k < count && status == TR_OK; k++)
        cost[k] = units * m.flow[k] + (units - 1) * m.add[k] + m.update[k] / replicas;
    release(&m);
    return status;
}
