#include "train/observe/probe.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

/* A rank's observations of a step; histograms of gradients [parameters] and of activations [layers]
   follow. */
struct head {
    double squares;  /* sum over the elements of the gradient, without running statistics */
    int64_t covered; /* their number */
};

struct tr_probe {
    tr_device *device, *holder; /* that computes, and of gradients and parameters */
    const struct tr_job *job;
    tr_comm *comm;
    tr_strategy *strategy;
    int rank, size;
    unsigned what;  /* of the step under way or done */
    float *squares; /* device [parameters] */
    float *partial; /* host [parameters] */
    float *copy;    /* host: copies of device memory; made when first needed */
    int64_t copy_floats;
    uint8_t *blocks; /* [size]: a head and its histograms each, this rank's in its place; then the sum in
                        the first */
    struct tr_histogram *parameter; /* [parameters] */
};

static int histogram_count(const tr_probe *probe)
{
    return probe->job->model->parameter_count + probe->job->model->layer_count;
}

/* Bytes of a rank's observations of the step. */
static size_t block_bytes(const tr_probe *probe, unsigned what)
{
    size_t histograms =
        what & TR_PROBE_HISTOGRAMS ? (size_t)histogram_count(probe) * sizeof(struct tr_histogram) : 0;
    return sizeof(struct head) + histograms;
}

static struct head *head_of(const tr_probe *probe, int rank)
{
    return (struct head *)(probe->blocks + (size_t)rank * block_bytes(probe, probe->what));
}

static struct tr_histogram *histograms_of(const tr_probe *probe, int rank)
{
    return (struct tr_histogram *)(head_of(probe, rank) + 1);
}

tr_status tr_probe_create(tr_device *device, const struct tr_job *job, tr_comm *comm, tr_strategy *strategy,
                          bool histograms, tr_probe **out)
{
    size_t parameters = (size_t)job->model->parameter_count + 1;
    tr_probe *probe = tr_alloc_zero(1, sizeof *probe);
    if (!probe) return TR_ENOMEM;
    *probe = (tr_probe){.device = device,
                        .holder = tr_strategy_holder(strategy),
                        .job = job,
                        .comm = comm,
                        .strategy = strategy,
                        .size = 1};
    if (comm && !tr_strategy_is_asynchronous(strategy)) {
        probe->rank = tr_comm_rank(comm);
        probe->size = tr_comm_size(comm);
    }
    size_t bytes = block_bytes(probe, histograms ? TR_PROBE_HISTOGRAMS : 0);
    probe->blocks = tr_alloc_zero((size_t)probe->size, bytes);
    probe->partial = tr_alloc(parameters, sizeof *probe->partial);
    if (histograms) probe->parameter = tr_alloc_zero(parameters, sizeof *probe->parameter);
    tr_status status =
        probe->blocks && probe->partial && (probe->parameter || !histograms) ? TR_OK : TR_ENOMEM;
    void *memory;
    if (status == TR_OK)
        status = tr_device_alloc(probe->holder, parameters * sizeof *probe->squares, &memory);
    if (status != TR_OK) {
        tr_probe_destroy(&probe);
        return status;
    }
    probe->squares = memory;
    *out = probe;
    return TR_OK;
}

void tr_probe_destroy(tr_probe **handle)
{
    tr_probe *probe = *handle;
    if (!probe) return;
    tr_device_free(probe->holder, probe->squares);
    tr_free(probe->partial);
    tr_free(probe->copy);
    tr_free(probe->blocks);
    tr_free(probe->parameter);
    tr_free(probe);
    *handle = NULL;
}

/* ---- while a step goes on ---- */

/* Adds memory of a device, after all enqueued work. */
static tr_status add_device(tr_probe *probe, tr_device *device, struct tr_histogram *histogram,
                            const float *values, int64_t count)
{
    const float *view = tr_device_host_view(device, values);
    if (!view && count > probe->copy_floats) {
        tr_free(probe->copy);
        probe->copy_floats = 0;
        probe->copy = tr_alloc((size_t)count, sizeof *probe->copy);
        if (!probe->copy) return TR_ENOMEM;
        probe->copy_floats = count;
    }
    if (!view) TR_TRY(tr_device_to_host(device, probe->copy, values, (size_t)count * sizeof *values));
    TR_TRY(tr_device_wait(device));
    tr_histogram_add(histogram, view ? view : probe->copy, count);
    return TR_OK;
}

static tr_status see_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    tr_probe *probe = user;
    const struct tr_model *model = probe->job->model;
    struct tr_histogram *activation = histograms_of(probe, probe->rank) + model->parameter_count;
    return add_device(probe, probe->device, &activation[layer - model->layers], output, count);
}

/* The part of a parameter in floats [begin, end) of the arena. */
struct piece {
    int64_t offset, count;
};

static struct piece piece_of(const struct tr_parameter *parameter, int64_t begin, int64_t end)
{
    int64_t from = parameter->offset > begin ? parameter->offset : begin;
    int64_t to = parameter->offset + parameter->count < end ? parameter->offset + parameter->count : end;
    return (struct piece){from, to > from ? to - from : 0};
}

/* Enqueues the sums of squares of all pieces, then adds them in order. */
static tr_status add_squares(tr_probe *probe, const float *gradient, int64_t begin, int64_t end)
{
    const struct tr_model *model = probe->job->model;
    struct head *head = head_of(probe, probe->rank);
    int pieces = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        struct piece piece = piece_of(&model->parameters[i], begin, end);
        if (piece.count == 0 || model->parameters[i].kind == TR_PARAMETER_STATISTIC) continue;
        struct tr_op_sum_squares sum = {piece.count, gradient + (piece.offset - begin),
                                        probe->squares + pieces++};
        TR_TRY(tr_device_sum_squares(probe->holder, &sum));
        head->covered += piece.count;
    }
    TR_TRY(tr_device_to_host(probe->holder, probe->partial, probe->squares, (size_t)pieces * sizeof(float)));
    TR_TRY(tr_device_wait(probe->holder));
    for (int i = 0; i < pieces; i++) head->squares += (double)probe->partial[i];
    return TR_OK;
}

static tr_status see_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    tr_probe *probe = user;
    const struct tr_model *model = probe->job->model;
    TR_TRY(add_squares(probe, gradient, begin, end));
    for (int i = 0; probe->what & TR_PROBE_HISTOGRAMS && i < model->parameter_count; i++) {
        struct piece piece = piece_of(&model->parameters[i], begin, end);
        if (piece.count == 0) continue;
        TR_TRY(add_device(probe, probe->holder, histograms_of(probe, probe->rank) + i,
                          gradient + (piece.offset - begin), piece.count));
    }
    return TR_OK;
}

void tr_probe_begin(tr_probe *probe, unsigned what)
{
    probe->what = what;
    if (!what) return;
    memset(probe->blocks, 0, (size_t)probe->size * block_bytes(probe, what));
    if (tr_strategy_is_asynchronous(probe->strategy)) return;
    tr_strategy_observe(probe->strategy, TR_OBSERVER_PROBE,
                        (struct tr_strategy_observer){
                            .layer = what & TR_PROBE_HISTOGRAMS ? see_layer : NULL,
                            .update = see_update,
                            .user = probe,
                        });
}

/* ---- when it is done ---- */

/* Adds all ranks' observations to the first block. */
static void merge_blocks(tr_probe *probe)
{
    struct head *head = head_of(probe, 0);
    int histograms = probe->what & TR_PROBE_HISTOGRAMS ? histogram_count(probe) : 0;
    for (int r = 1; r < probe->size; r++) {
        head->squares += head_of(probe, r)->squares;
        head->covered += head_of(probe, r)->covered;
        for (int i = 0; i < histograms; i++)
            tr_histogram_merge(&histograms_of(probe, 0)[i], &histograms_of(probe, r)[i]);
    }
}

static tr_status probe_parameters(tr_probe *probe)
{
    const struct tr_model *model = probe->job->model;
    const float *arena = tr_variables_arena(tr_strategy_variables(probe->strategy), TR_ARENA_PARAMETERS);
    memset(probe->parameter, 0, (size_t)model->parameter_count * sizeof *probe->parameter);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        TR_TRY(add_device(probe, probe->holder, &probe->parameter[i], arena + parameter->offset,
                          parameter->count));
    }
    return TR_OK;
}

tr_status tr_probe_end(tr_probe *probe)
{
    if (!probe->what) return TR_OK;
    tr_strategy_observe(probe->strategy, TR_OBSERVER_PROBE, (struct tr_strategy_observer){0});
    if (probe->size > 1) {
        TR_TRY(
            tr_comm_exchange(probe->comm, probe->blocks, block_bytes(probe, probe->what), "probe of a step"));
        merge_blocks(probe);
    }
    if (!(probe->what & TR_PROBE_HISTOGRAMS)) return TR_OK;
    if (!tr_strategy_is_asynchronous(probe->strategy)) TR_TRY(tr_strategy_gather_parameters(probe->strategy));
    tr_status status = probe->rank == 0 ? probe_parameters(probe) : TR_OK;
    tr_strategy_release(probe->strategy);
    return status;
}

/* ---- figures ---- */

double tr_probe_norm(const tr_probe *probe)
{
    const struct tr_model *model = probe->job->model;
    const struct head *head = head_of(probe, 0);
    int64_t all = 0;
    for (int i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].kind != TR_PARAMETER_STATISTIC) all += model->parameters[i].count;
    return probe->what && head->covered == all ? sqrt(head->squares) : NAN;
}

static const struct tr_histogram *seen(const tr_probe *probe, const struct tr_histogram *histogram)
{
    return probe->what & TR_PROBE_HISTOGRAMS && histogram->count + histogram->nonfinite > 0 ? histogram
                                                                                            : NULL;
}

const struct tr_histogram *tr_probe_parameter(const tr_probe *probe, int i)
{
    return seen(probe, &probe->parameter[i]);
}

const struct tr_histogram *tr_probe_gradient(const tr_probe *probe, int i)
{
    return seen(probe, histograms_of(probe, 0) + i);
}

const struct tr_histogram *tr_probe_activation(const tr_probe *probe, int i)
{
    return seen(probe, histograms_of(probe, 0) + probe->job->model->parameter_count + i);
}
