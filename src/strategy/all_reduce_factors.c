/* Gradients of large weights from factors.
 *
 * The gradient of a dense layer's weights is x^T dy over the rows of the batch. Where the weights are many
 * and the rows few, ranks of a host rather show each other x and dy, the sufficient factors (Xie et al. 2016,
 * "Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting"), than gradients of
 * the size of the weights: each then forms its share of the inputs over the rows of all, and nothing is
 * added.
 *
 * The operation runs over all microbatches of the step at once, as in a single process, so the bits are the
 * same.
 */
#include "strategy/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/timeline.h"
#include "base/tree.h"

#include <assert.h>
#include <string.h>

/* Floats that are formed and then updated at a time, per thread: they stay in the second-level cache, and are
   enough for the operation to pay for packing its rows. */
#define PIECE (256 << 10)
/* In the place of gradients, so many times fewer floats are to be moved. */
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

/* The rows of smaller weights, or of more rows, move no less. */
static bool pays(const struct all_reduce *self, int64_t in, int64_t out)
{
    int64_t gradients = in * out, rows = batch_rows(self) * (in / self->head.size + out);
    return gradients >= GAIN * rows;
}

static bool suits(const struct all_reduce *self, const struct tr_layer *layer)
{
    const struct all_reduce_options *options = self->head.options;
    if (!layer->class->factors || layer->in[0].sequence || layer->parameter_count == 0) return false;
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
    const struct all_reduce_options *options = strategy->options;
    const struct tr_model *model = strategy->job->model;
    struct factors_memory *factors = &self->factors;
    int64_t before = 0;
    /* One host whose ranks share memory; a norm wants the whole gradient on each rank, a server has no device
       to compute with. */
    if (!strategy->comm || tr_comm_hosts(strategy->comm) > 1 || options->factors == FACTORS_NEVER ||
        strategy->servers > 0 || tr_strategy_measures(strategy->job))
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
            .before = before,
        };
        factors->apart[i] = true;
        before += tr_shape_count(&layer->in[0]) + tr_shape_count(&layer->out);
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

/* Inputs that are formed at a time. */
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
    factors->scratch = (size_t)(rows * (inputs + outputs)) * sizeof(float);
    factors->x = tr_alloc_aligned((size_t)(rows * inputs), sizeof *factors->x);
    factors->dy = tr_alloc_aligned((size_t)(rows * outputs), sizeof *factors->dy);
    return factors->row && factors->x && factors->dy ? TR_OK : TR_ENOMEM;
}

/* Whether all ranks update parameters with the device that computes. */
static tr_status ask_all(struct all_reduce *self, bool *all)
{
    const tr_strategy *strategy = &self->head;
    bool *able = self->factors.able = tr_alloc_zero((size_t)strategy->size, sizeof *able);
    if (!able) return TR_ENOMEM;
    able[strategy->rank] = strategy->device == strategy->holder;
    TR_TRY(tr_comm_exchange(strategy->comm, able, sizeof *able, "devices"));
    *all = true;
    for (int rank = 0; rank < strategy->size; rank++) *all = *all && able[rank];
    return TR_OK;
}

/* Floats of a rank's part of the window. */
static int64_t part_floats(const struct all_reduce *self, int rank)
{
    const struct factor *last = &self->factors.factor[self->factors.count - 1];
    return rows_of(self, rank) * (last->before + last->in + last->out);
}

/* Every rank has room for what it is to show. */
static tr_status check_window(const struct all_reduce *self)
{
    for (int rank = 0; rank < self->head.size; rank++) {
        size_t bytes, needed = (size_t)part_floats(self, rank) * sizeof(float);
        tr_window_part(self->factors.window, rank, &bytes);
        if (bytes < needed)
            return tr_fail(
                TR_EMISMATCH,
                "rank %d shares %zu bytes for factors, %zu are needed; all ranks must run the same "
                "program on the same job",
                rank, bytes, needed);
    }
    return TR_OK;
}

tr_status all_reduce_make_factors(struct all_reduce *self)
{
    struct factors_memory *factors = &self->factors;
    bool all = false;
    if (!self->nodes) factors->count = 0;
    if (factors->count == 0) return TR_OK;
    TR_TRY(ask_all(self, &all));
    if (all)
        TR_TRY(tr_strategy_window(&self->head, (size_t)part_floats(self, self->head.rank) * sizeof(float),
                                  &factors->window));
    if (!factors->window) {
        factors->count = 0;
        return TR_OK;
    }
    TR_TRY(check_window(self));
    return make_scratch(self);
}

size_t all_reduce_factors_memory(const struct all_reduce *self)
{
    return self->factors.count
               ? (size_t)part_floats(self, self->head.rank) * sizeof(float) + self->factors.scratch
               : 0;
}

void all_reduce_release_factors(struct all_reduce *self)
{
    struct factors_memory *factors = &self->factors;
    tr_window_destroy(&factors->window);
    tr_free(factors->factor);
    tr_free(factors->apart);
    tr_free(factors->able);
    tr_free(factors->row);
    tr_free(factors->x);
    tr_free(factors->dy);
}

/* ---- a step ---- */

/* Where a rank has the first of its rows of x; those of dy follow all of these. */
static float *rows_at(const struct all_reduce *self, const struct factor *factor, int rank)
{
    float *part = tr_window_part(self->factors.window, rank, NULL);
    return part + rows_of(self, rank) * factor->before;
}

/* Keeps the rows of a pass for all to see. */
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
    return tr_device_to_host(device, own + row * factor->out, dy, (size_t)(rows * factor->out) * sizeof *dy);
}

void all_reduce_take_factors(struct all_reduce *self)
{
    if (self->factors.count > 0)
        tr_gradient_leave_apart(self->head.gradient, self->factors.apart, take_rows, self);
}

/* Copies columns [first, first + columns) of matrices [rows][width] of all ranks, one below the other, to
   `to`. `skip`: floats of each row of a rank's part before its matrix. */
static void collect(struct all_reduce *self, const struct factor *factor, int64_t skip, int64_t width,
                    int64_t first, int64_t columns, float *to)
{
    struct factors_memory *factors = &self->factors;
    size_t bytes = (size_t)columns * sizeof *to;
    for (int rank = 0; rank < self->head.size; rank++) {
        int64_t rows = factors->row[self->microbatch[rank + 1]] - factors->row[self->microbatch[rank]];
        const float *from = rows_at(self, factor, rank) + rows_of(self, rank) * skip + first;
        for (int64_t r = 0; r < rows; r++, from += width, to += columns) memcpy(to, from, bytes);
        if (rank != self->head.rank) self->head.done.bytes_shared += rows * (int64_t)bytes;
    }
}

tr_status all_reduce_form(void *user, int64_t begin, int64_t end, float *out)
{
    const struct bucket *bucket = user;
    struct all_reduce *self = bucket->owner;
    struct factors_memory *factors = &self->factors;
    const struct factor *factor = bucket->factor;
    int64_t first = begin / factor->out, inputs = (end - begin) / factor->out;
    int32_t microbatches = (int32_t)self->head.job->train.microbatches, whole[2] = {0, microbatches};
    assert(begin % factor->out == 0 && end % factor->out == 0);
    if (begin == bucket->share[self->head.rank])
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
    tr_span_work(2.0 * (double)(end - begin) * (double)factors->row[microbatches], 0);
    tr_status status = tr_device_dense_backward_weights(self->head.device, &op);
    if (status == TR_OK) status = tr_device_wait(self->head.device);
    tr_span_end();
    return status;
}
