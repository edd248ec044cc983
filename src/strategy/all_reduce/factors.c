/* Gradients of large weights from factors.
 *
 * The gradient of a dense layer's weights is x^T dy over the rows of the batch. Where the weights are many
 * and the rows few, ranks exchange x and dy, the sufficient factors (Xie et al. 2016,
 * "Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting"), rather than
 * gradients of the size of the weights. Each then computes its shard of the gradient over the rows of all
 * ranks, and nothing is added.
 *
 * Each host has one copy of the rows of all ranks, in a window: for each factor the ranks' blocks one
 * after the other, each with x and then dy. The host's ranks write theirs there; with several hosts, an
 * all-gather of the blocks adds those of other hosts.
 *
 * The operation runs over all microbatches of the step at once, as in a single process, so the bits are the
 * same.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/timeline.h"
#include "base/numbers/tree.h"
#include "comm/program.h"

#include <assert.h>
#include <string.h>

/* Floats that are computed and then updated at a time, per thread: they fit the second-level cache, and
   are enough for the operation to be worth packing its rows. */
#define PIECE (256 << 10)
/* Least ratio of gradients' floats to factors' floats to move. */
#define GAIN 3

/* ---- choosing ---- */

static int64_t batch_rows(const struct all_reduce *self)
{
    return self->head.job->train.batch;
}

static int64_t rows_of(const struct all_reduce *self, int rank)
{
    int64_t microbatches = self->head.job->train.microbatches;
    int64_t own = self->microbatch[rank + 1] - self->microbatch[rank];
    return (batch_rows(self) * own + microbatches - 1) / microbatches;
}

/* Rows to make room for before those of a rank; for `size`: all. */
static int64_t rows_before(const struct all_reduce *self, int rank)
{
    int64_t rows = 0;
    for (int r = 0; r < rank; r++) rows += rows_of(self, r);
    return rows;
}

/* For smaller weights, or with more rows, factors are not smaller. Between hosts, whole rows are moved. */
static bool pays(const struct all_reduce *self, int64_t in, int64_t out)
{
    int64_t inputs = tr_comm_hosts(self->head.comm) > 1 ? in : in / self->head.size;
    return in * out >= GAIN * batch_rows(self) * (inputs + out);
}

static bool suits(const struct all_reduce *self, const struct tr_layer *layer)
{
    const struct all_reduce_options *options = &self->options;
    if (!layer->class->factors || layer->in[0].sequence || layer->parameter_count == 0 || layer->shared ||
        tr_layer_is_base(layer))
        return false;
    return options->factors == FACTORS_ALWAYS ||
           pays(self, tr_shape_count(&layer->in[0]), tr_shape_count(&layer->out));
}

static int64_t grain_of(int64_t out)
{
    int64_t grain = TR_CACHE_LINE / (int64_t)sizeof(float);
    while (grain > 1 && out % 2 == 0) {
        grain /= 2;
        out /= 2;
    }
    return grain;
}

tr_status all_reduce_choose_factors(struct all_reduce *self)
{
    const tr_strategy *strategy = &self->head;
    const struct all_reduce_options *options = &self->options;
    const struct tr_model *model = strategy->job->model;
    struct factors_memory *factors = &self->factors;
    /* A norm needs the whole gradient on each rank, some rules need that of whole weights, and a server
     * has no device to compute with.
     */
    if (!strategy->comm || options->factors == FACTORS_NEVER || strategy->servers > 0 ||
        tr_strategy_measures(strategy->job) || tr_optimizer_takes_wholes(&strategy->job->optimizer))
        return TR_OK;
    factors->factor = tr_alloc_zero((size_t)model->layer_count, sizeof *factors->factor);
    factors->apart = tr_alloc_zero((size_t)model->layer_count, sizeof *factors->apart);
    if (!factors->factor || !factors->apart) return TR_ENOMEM;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        if (!suits(self, layer)) continue;
        const struct tr_parameter *weights = &model->parameters[layer->parameter[0]];
        factors->factor[factors->count++] = (struct factor){
            .layer = i,
            .in = tr_shape_count(&layer->in[0]),
            .out = tr_shape_count(&layer->out),
            .begin = weights->offset,
            .end = weights->offset + weights->count,
            .grain = grain_of(tr_shape_count(&layer->out)),
        };
        factors->apart[i] = true;
    }
    return TR_OK;
}

const struct factor *all_reduce_factor_of(const struct all_reduce *self, int layer)
{
    for (int i = 0; i < self->factors.count; i++)
        if (self->factors.factor[i].layer == layer) return &self->factors.factor[i];
    return NULL;
}

/* ---- memory ---- */

/* Inputs whose gradient is computed at a time. */
static int64_t piece_inputs(const struct all_reduce *self, const struct factor *factor)
{
    int64_t grains = (int64_t)PIECE * self->head.device->threads / (factor->out * factor->grain);
    int64_t all = (factor->in + factor->grain - 1) / factor->grain;
    return (grains < 1 ? 1 : grains < all ? grains : all) * factor->grain;
}

int64_t all_reduce_factor_piece(const struct all_reduce *self, const struct factor *factor)
{
    return piece_inputs(self, factor) * factor->out;
}

/* Floats of a host's copy. */
static int64_t copy_floats(const struct all_reduce *self)
{
    const struct factor *last = &self->factors.factor[self->factors.count - 1];
    return last->before + rows_before(self, self->head.size) * (last->in + last->out);
}

/* Whether this rank's part of the window is its host's copy. */
static bool has_copy(const struct all_reduce *self)
{
    return tr_comm_local_rank(self->head.comm) == 0;
}

static tr_status make_scratch(struct all_reduce *self)
{
    struct factors_memory *factors = &self->factors;
    int64_t rows = batch_rows(self), inputs = 0, outputs = 0;
    for (int i = 0; i < factors->count; i++) {
        const struct factor *factor = &factors->factor[i];
        if (piece_inputs(self, factor) > inputs) inputs = piece_inputs(self, factor);
        if (factor->out > outputs) outputs = factor->out;
    }
    factors->row = tr_alloc((size_t)self->head.job->train.microbatches + 1, sizeof *factors->row);
    int64_t shared = has_copy(self) ? copy_floats(self) : 0;
    factors->memory = (size_t)(rows * (inputs + outputs) + shared) * sizeof(float);
    self->head.memory += factors->memory;
    size_t bounds = (size_t)self->head.size + 1;
    factors->before = tr_alloc(bounds, sizeof *factors->before);
    factors->bytes = tr_alloc(bounds, sizeof *factors->bytes);
    if (!factors->before || !factors->bytes) return TR_ENOMEM;
    for (int rank = 0; rank <= self->head.size; rank++) factors->before[rank] = rows_before(self, rank);
    factors->x = tr_alloc_aligned((size_t)(rows * inputs), sizeof *factors->x);
    factors->dy = tr_alloc_aligned((size_t)(rows * outputs), sizeof *factors->dy);
    return factors->row && factors->x && factors->dy ? TR_OK : TR_ENOMEM;
}

/* Whether all ranks update parameters with the device that computes, and it can read the window with all
   ranks' rows. */
static tr_status ask_all(struct all_reduce *self, bool *all)
{
    const tr_strategy *strategy = &self->head;
    bool *able = self->factors.able = tr_alloc_zero((size_t)strategy->size, sizeof *able);
    if (!able) return TR_ENOMEM;
    able[strategy->rank] =
        strategy->device == strategy->holder && tr_device_host_view(strategy->device, able);
    TR_TRY(tr_comm_exchange(strategy->comm, able, sizeof *able, "devices"));
    *all = true;
    for (int rank = 0; rank < strategy->size; rank++) *all = *all && able[rank];
    return TR_OK;
}

/* Checks that the window has room for all rows. */
static tr_status check_window(const struct all_reduce *self)
{
    int holder = tr_comm_local(self->head.comm, 0);
    size_t bytes, needed = (size_t)copy_floats(self) * sizeof(float);
    tr_window_segment(self->factors.window, holder, &bytes);
    if (bytes >= needed) return TR_OK;
    return tr_fail(TR_EMISMATCH,
                   "rank %d shares %zu bytes for factors, %zu are needed; all ranks must run the same "
                   "program on the same job",
                   holder, bytes, needed);
}

/* Factors lie one after the other, with the rows of all ranks. */
static void place(struct all_reduce *self)
{
    struct factors_memory *factors = &self->factors;
    int64_t before = 0;
    for (int i = 0; i < factors->count; i++) {
        factors->factor[i].before = before;
        before += rows_before(self, self->head.size) * (factors->factor[i].in + factors->factor[i].out);
    }
}

tr_status all_reduce_make_factors(struct all_reduce *self)
{
    struct factors_memory *factors = &self->factors;
    bool all = false;
    if (!self->nodes) factors->count = 0;
    if (factors->count == 0) return TR_OK;
    place(self);
    TR_TRY(ask_all(self, &all));
    if (all)
        TR_TRY(tr_strategy_window(self->head.comm,
                                  has_copy(self) ? (size_t)copy_floats(self) * sizeof(float) : 0,
                                  &factors->window));
    if (!factors->window) {
        factors->count = 0;
        return TR_OK;
    }
    TR_TRY(check_window(self));
    return make_scratch(self);
}

void all_reduce_unmake_factors(struct all_reduce *self)
{
    struct factors_memory *factors = &self->factors;
    struct factor *factor = factors->factor;
    bool *apart = factors->apart;
    int count = factors->count;
    tr_window_destroy(&factors->window);
    tr_free(factors->able);
    tr_free(factors->row);
    tr_free(factors->before);
    tr_free(factors->bytes);
    tr_free(factors->x);
    tr_free(factors->dy);
    self->head.memory -= factors->memory;
    *factors = (struct factors_memory){.factor = factor, .count = count, .apart = apart};
}

void all_reduce_release_factors(struct all_reduce *self)
{
    all_reduce_unmake_factors(self);
    tr_free(self->factors.factor);
    tr_free(self->factors.apart);
}

/* ---- a step ---- */

static float *copy_of(const struct all_reduce *self, const struct factor *factor)
{
    float *copy = tr_window_segment(self->factors.window, tr_comm_local(self->head.comm, 0), NULL);
    return copy + factor->before;
}

/* Where a rank's rows of x begin; those of dy follow all of these. */
static float *rows_at(const struct all_reduce *self, const struct factor *factor, int rank)
{
    return copy_of(self, factor) + self->factors.before[rank] * (factor->in + factor->out);
}

tr_status all_reduce_show_factors(struct bucket *bucket)
{
    struct all_reduce *self = bucket->owner;
    const struct factor *factor = bucket->factor;
    struct factors_memory *factors = &self->factors;
    for (int rank = 0; rank <= self->head.size; rank++)
        factors->bytes[rank] = factors->before[rank] * (factor->in + factor->out) * (int64_t)sizeof(float);
    return tr_comm_all_gather(self->head.comm, copy_of(self, factor), factors->bytes, factors->window,
                              "factors", &bucket->rows);
}

/* Keeps the rows of a pass in the window. */
static tr_status take_rows(void *user, int layer, const float *x, const float *dy,
                           const struct tr_pass_batch *batch)
{
    struct all_reduce *self = user;
    const struct factor *factor = all_reduce_factor_of(self, layer);
    tr_device *device = self->head.device;
    int rank = self->head.rank;
    int64_t microbatches = self->head.job->train.microbatches, all = batch->global_examples;
    float *own = rows_at(self, factor, rank);
    for (int64_t m = 0; m <= microbatches; m++) self->factors.row[m] = tr_cut(all, microbatches, m);
    int64_t row = batch->first_example - self->factors.row[self->microbatch[rank]], rows = batch->examples;
    assert(row >= 0 && row + rows <= rows_of(self, rank));
    TR_TRY(tr_device_to_host(device, own + row * factor->in, x, (size_t)(rows * factor->in) * sizeof *x));
    own += rows_of(self, rank) * factor->in;
    tr_program_moved(2 * rows * (factor->in + factor->out), 0);
    return tr_device_to_host(device, own + row * factor->out, dy, (size_t)(rows * factor->out) * sizeof *dy);
}

void all_reduce_take_factors(struct all_reduce *self)
{
    if (self->factors.count > 0)
        tr_gradient_leave_apart(self->head.replicas->gradient, self->factors.apart, take_rows, self);
}

/* Copies columns [first, first + columns) of the matrices [rows][width] of all ranks, one below the other,
   to `to`. `skip`: floats before the matrix in each row of a rank's part. */
static void collect(struct all_reduce *self, const struct factor *factor, int64_t skip, int64_t width,
                    int64_t first, int64_t columns, float *to)
{
    struct factors_memory *factors = &self->factors;
    size_t bytes = (size_t)columns * sizeof *to;
    for (int rank = 0; rank < self->head.size; rank++) {
        int64_t rows = factors->row[self->microbatch[rank + 1]] - factors->row[self->microbatch[rank]];
        const float *from = rows_at(self, factor, rank) + rows_of(self, rank) * skip + first;
        for (int64_t r = 0; r < rows; r++, from += width, to += columns) memcpy(to, from, bytes);
        bool near = rank != self->head.rank && tr_comm_host_of(self->head.comm, rank) ==
                                                   tr_comm_host_of(self->head.comm, self->head.rank);
        tr_program_moved(2 * rows * columns, near ? rows * columns : 0);
        if (near) self->head.done.bytes_shared += rows * (int64_t)bytes;
    }
}

tr_status all_reduce_form(const struct bucket *bucket, int64_t begin, int64_t end, float *out)
{
    struct all_reduce *self = bucket->owner;
    struct factors_memory *factors = &self->factors;
    const struct factor *factor = bucket->factor;
    int64_t first = begin / factor->out, inputs = (end - begin) / factor->out;
    int32_t microbatches = (int32_t)self->head.job->train.microbatches, whole[2] = {0, microbatches};
    assert(begin % factor->out == 0 && end % factor->out == 0);
    if (begin == bucket->shard[self->head.rank])
        collect(self, factor, factor->in, factor->out, 0, factor->out, factors->dy);
    collect(self, factor, 0, factor->in, first, inputs, factors->x);
    struct tr_op_dense_backward_weights op = {
        .in = inputs,
        .out = factor->out,
        .x = factors->x,
        .dy = factors->dy,
        .dw = out,
        .cut = {microbatches, factors->row, 1, whole, 0},
    };
    tr_span_begin(TR_ACTIVITY_BACKWARD, self->head.job->model->layers[factor->layer].name);
    tr_status status = tr_device_dense_backward_weights(self->head.device, &op);
    if (status == TR_OK) status = tr_device_wait(self->head.device);
    tr_span_end();
    return status;
}
