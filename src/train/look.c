#include "train/look.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

/* What a rank saw of a step; histograms of gradients [parameters] and of activations [layers] follow. */
struct head {
    double squares;  /* sum over the elements of the gradient, without running statistics */
    int64_t covered; /* their number */
};

struct tr_look {
    tr_device *device;
    const struct tr_job *job;
    tr_comm *comm;
    tr_strategy *strategy;
    int rank, size;
    unsigned what;  /* of the step under way or done */
    float *squares; /* device [parameters] */
    float *partial; /* host [parameters] */
    float *copy;    /* host: device memory that cannot be seen; made when first needed */
    int64_t copy_floats;
    uint8_t *blocks; /* [size]: a head and its histograms each, this rank's in its place; then the sum in the
                        first */
    struct tr_histogram *parameter; /* [parameters] */
};

static int histogram_count(const tr_look *look)
{
    return look->job->model->parameter_count + look->job->model->layer_count;
}

/* Bytes of what a rank says about the step. */
static size_t block_bytes(const tr_look *look, unsigned what)
{
    size_t histograms =
        what & TR_LOOK_HISTOGRAMS ? (size_t)histogram_count(look) * sizeof(struct tr_histogram) : 0;
    return sizeof(struct head) + histograms;
}

static struct head *head_of(const tr_look *look, int rank)
{
    return (struct head *)(look->blocks + (size_t)rank * block_bytes(look, look->what));
}

static struct tr_histogram *histograms_of(const tr_look *look, int rank)
{
    return (struct tr_histogram *)(head_of(look, rank) + 1);
}

tr_status tr_look_create(tr_device *device, const struct tr_job *job, tr_comm *comm, tr_strategy *strategy,
                         bool histograms, tr_look **out)
{
    size_t parameters = (size_t)job->model->parameter_count + 1;
    tr_look *look = tr_alloc_zero(1, sizeof *look);
    if (!look) return TR_ENOMEM;
    *look = (tr_look){.device = device, .job = job, .comm = comm, .strategy = strategy, .size = 1};
    if (comm && !tr_strategy_is_asynchronous(strategy)) {
        look->rank = tr_comm_rank(comm);
        look->size = tr_comm_size(comm);
    }
    size_t bytes = block_bytes(look, histograms ? TR_LOOK_HISTOGRAMS : 0);
    look->blocks = tr_alloc_zero((size_t)look->size, bytes);
    look->partial = tr_alloc(parameters, sizeof *look->partial);
    if (histograms) look->parameter = tr_alloc_zero(parameters, sizeof *look->parameter);
    tr_status status = look->blocks && look->partial && (look->parameter || !histograms) ? TR_OK : TR_ENOMEM;
    void *memory;
    if (status == TR_OK) status = tr_device_alloc(device, parameters * sizeof *look->squares, &memory);
    if (status != TR_OK) {
        tr_look_destroy(&look);
        return status;
    }
    look->squares = memory;
    *out = look;
    return TR_OK;
}

void tr_look_destroy(tr_look **handle)
{
    tr_look *look = *handle;
    if (!look) return;
    tr_device_free(look->device, look->squares);
    tr_free(look->partial);
    tr_free(look->copy);
    tr_free(look->blocks);
    tr_free(look->parameter);
    tr_free(look);
    *handle = NULL;
}

/* ---- while a step goes on ---- */

/* Adds device memory, when all that was enqueued is done. */
static tr_status add_device(tr_look *look, struct tr_histogram *histogram, const float *values, int64_t count)
{
    const float *view = tr_device_host_view(look->device, values);
    if (!view && count > look->copy_floats) {
        tr_free(look->copy);
        look->copy_floats = 0;
        look->copy = tr_alloc((size_t)count, sizeof *look->copy);
        if (!look->copy) return TR_ENOMEM;
        look->copy_floats = count;
    }
    if (!view) TR_TRY(tr_device_to_host(look->device, look->copy, values, (size_t)count * sizeof *values));
    TR_TRY(tr_device_wait(look->device));
    tr_histogram_add(histogram, view ? view : look->copy, count);
    return TR_OK;
}

static tr_status see_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    tr_look *look = user;
    const struct tr_model *model = look->job->model;
    struct tr_histogram *activation = histograms_of(look, look->rank) + model->parameter_count;
    return add_device(look, &activation[layer - model->layers], output, count);
}

/* The part of a parameter that lies in floats [begin, end) of the arena. */
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
static tr_status add_squares(tr_look *look, const float *gradient, int64_t begin, int64_t end)
{
    const struct tr_model *model = look->job->model;
    struct head *head = head_of(look, look->rank);
    int pieces = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        struct piece piece = piece_of(&model->parameters[i], begin, end);
        if (piece.count == 0 || model->parameters[i].kind == TR_PARAMETER_STATISTIC) continue;
        struct tr_op_sum_squares sum = {piece.count, gradient + piece.offset, look->squares + pieces++};
        TR_TRY(tr_device_sum_squares(look->device, &sum));
        head->covered += piece.count;
    }
    TR_TRY(tr_device_to_host(look->device, look->partial, look->squares, (size_t)pieces * sizeof(float)));
    TR_TRY(tr_device_wait(look->device));
    for (int i = 0; i < pieces; i++) head->squares += (double)look->partial[i];
    return TR_OK;
}

static tr_status see_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    tr_look *look = user;
    const struct tr_model *model = look->job->model;
    TR_TRY(add_squares(look, gradient, begin, end));
    for (int i = 0; look->what & TR_LOOK_HISTOGRAMS && i < model->parameter_count; i++) {
        struct piece piece = piece_of(&model->parameters[i], begin, end);
        if (piece.count == 0) continue;
        TR_TRY(add_device(look, histograms_of(look, look->rank) + i, gradient + piece.offset, piece.count));
    }
    return TR_OK;
}

void tr_look_begin(tr_look *look, unsigned what)
{
    look->what = what;
    if (!what) return;
    memset(look->blocks, 0, (size_t)look->size * block_bytes(look, what));
    if (tr_strategy_is_asynchronous(look->strategy)) return;
    tr_strategy_watch(look->strategy, TR_WATCHER_LOOK,
                      (struct tr_strategy_watch){
                          .layer = what & TR_LOOK_HISTOGRAMS ? see_layer : NULL,
                          .update = see_update,
                          .user = look,
                      });
}

/* ---- when it is done ---- */

/* Adds what all ranks saw to the first block. */
static void merge_blocks(tr_look *look)
{
    struct head *head = head_of(look, 0);
    int histograms = look->what & TR_LOOK_HISTOGRAMS ? histogram_count(look) : 0;
    for (int r = 1; r < look->size; r++) {
        head->squares += head_of(look, r)->squares;
        head->covered += head_of(look, r)->covered;
        for (int i = 0; i < histograms; i++)
            tr_histogram_merge(&histograms_of(look, 0)[i], &histograms_of(look, r)[i]);
    }
}

static tr_status look_at_parameters(tr_look *look)
{
    const struct tr_model *model = look->job->model;
    const float *arena = tr_variables_arena(tr_strategy_variables(look->strategy), TR_ARENA_PARAMETERS);
    memset(look->parameter, 0, (size_t)model->parameter_count * sizeof *look->parameter);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        TR_TRY(add_device(look, &look->parameter[i], arena + parameter->offset, parameter->count));
    }
    return TR_OK;
}

tr_status tr_look_end(tr_look *look, const struct tr_step_figures *figures)
{
    if (!look->what) return TR_OK;
    tr_strategy_watch(look->strategy, TR_WATCHER_LOOK, (struct tr_strategy_watch){0});
    if (look->size > 1) {
        TR_TRY(tr_comm_exchange(look->comm, look->blocks, block_bytes(look, look->what), "look at a step"));
        merge_blocks(look);
    }
    if (!(look->what & TR_LOOK_HISTOGRAMS)) return TR_OK;
    if (figures->settled && !tr_strategy_is_asynchronous(look->strategy))
        TR_TRY(tr_strategy_gather_parameters(look->strategy));
    tr_status status = look->rank == 0 ? look_at_parameters(look) : TR_OK;
    tr_strategy_release(look->strategy);
    return status;
}

/* ---- figures ---- */

double tr_look_norm(const tr_look *look)
{
    const struct tr_model *model = look->job->model;
    const struct head *head = head_of(look, 0);
    int64_t all = 0;
    for (int i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].kind != TR_PARAMETER_STATISTIC) all += model->parameters[i].count;
    return look->what && head->covered == all ? sqrt(head->squares) : NAN;
}

static const struct tr_histogram *seen(const tr_look *look, const struct tr_histogram *histogram)
{
    return look->what & TR_LOOK_HISTOGRAMS && histogram->count + histogram->nonfinite > 0 ? histogram : NULL;
}

const struct tr_histogram *tr_look_parameter(const tr_look *look, int i)
{
    return seen(look, &look->parameter[i]);
}

const struct tr_histogram *tr_look_gradient(const tr_look *look, int i)
{
    return seen(look, histograms_of(look, 0) + i);
}

const struct tr_histogram *tr_look_activation(const tr_look *look, int i)
{
    return seen(look, histograms_of(look, 0) + look->job->model->parameter_count + i);
}
