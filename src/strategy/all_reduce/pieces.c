/* A process that trains alone, without the norm of the gradient, does not need the whole gradient of large
 * dense weights: it is computed when backward has its factors, x and dy, and updates the weights while it
 * is in the cache. That saves memory of the size of the weights, and two passes over it in each step.
 * Large weights are updated piece by piece, with memory for one piece; smaller ones by one operation, tile
 * by tile, unless the device lacks it or updates are observed.
 *
 * Invariants: a piece is the gradient of some inputs over all microbatches of the step, so its bits are
 * those of the whole; the weights of a layer are not read after its backward. The loss is known by then,
 * since its sums come first in a backward pass.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/timeline.h"

#include <string.h>

/* Least floats of a piece: they fit the second-level caches of a few threads, and are enough for the
   operation to be worth packing dy. Layers still have few pieces. */
#define PIECE       ((int64_t)512 << 10)
#define PIECES_MOST 64
/* Most floats of weights that are updated tile by tile. With their moments they fit a last-level cache; in
   memory, a pass over contiguous ones is faster. The second limit applies where pieces are the
   alternative. */
#define FUSED_MOST  ((int64_t)1 << 20)
#define FUSED_PIECE (PIECE / 4)

/* Whether weights are so few that their gradient is better applied tile by tile. */
static bool is_fused(const struct tr_layer *layer)
{
    return tr_shape_count(&layer->in[0]) * tr_shape_count(&layer->out) <= FUSED_MOST;
}

/* Inputs whose gradient is computed at a time. */
static int64_t inputs_of(const struct tr_layer *layer)
{
    int64_t in = tr_shape_count(&layer->in[0]), out = tr_shape_count(&layer->out);
    int64_t by_size = (is_fused(layer) ? FUSED_PIECE : PIECE) / out;
    int64_t by_count = (in + PIECES_MOST - 1) / PIECES_MOST;
    int64_t inputs = by_size > by_count ? by_size : by_count;
    return inputs > in ? in : inputs > 0 ? inputs : 1;
}

static bool suits(const struct tr_layer *layer, enum factors factors)
{
    if (!layer->class->factors || layer->in[0].sequence || layer->parameter_count == 0 || layer->shared ||
        tr_layer_is_base(layer))
        return false;
    return factors == FACTORS_ALWAYS || 2 * inputs_of(layer) <= tr_shape_count(&layer->in[0]);
}

/* Whether a step of one process provides everything at once. */
static bool may_form(const struct tr_job *job, enum factors factors)
{
    const struct tr_train_options *train = &job->train;
    bool one_pass = !train->pass || train->pass >= train->microbatches;
    return factors != FACTORS_NEVER && one_pass && !tr_strategy_measures(job) &&
           !tr_optimizer_takes_wholes(&job->optimizer);
}

/* Floats that computing takes, and floats of gradients that it saves. */
struct sizes {
    int64_t x, piece, spared;
};

static struct sizes sizes_of(const struct tr_job *job, enum factors factors, bool *apart)
{
    const struct tr_model *model = job->model;
    struct sizes sizes = {0};
    for (int i = 0; i < model->layer_count && may_form(job, factors); i++) {
        const struct tr_layer *layer = &model->layers[i];
        if (!suits(layer, factors)) continue;
        int64_t inputs = inputs_of(layer), floats = inputs * tr_shape_count(&layer->out);
        if (apart) apart[i] = true;
        if (inputs * job->train.batch > sizes.x) sizes.x = inputs * job->train.batch;
        if (floats > sizes.piece) sizes.piece = floats;
        sizes.spared += model->parameters[layer->parameter[0]].count;
    }
    return sizes;
}

int64_t all_reduce_spares(const struct tr_job *job, const void *options)
{
    const struct all_reduce_options *own = options;
    struct sizes sizes = sizes_of(job, own->factors, NULL);
    int64_t floats = sizes.spared - sizes.x - sizes.piece;
    return floats > 0 ? floats * (int64_t)sizeof(float) : 0;
}

tr_status all_reduce_choose_pieces(struct all_reduce *self)
{
    tr_strategy *strategy = &self->head;
    struct pieces *pieces = &self->pieces;
    /* The same device updates and computes, so neither waits for the other. */
    if (strategy->comm || !strategy->class->spares || strategy->settings.whole_gradients ||
        strategy->device != strategy->holder || !tr_device_host_view(strategy->device, pieces))
        return TR_OK;
    pieces->apart = tr_alloc_zero((size_t)strategy->job->model->layer_count, sizeof *pieces->apart);
    if (!pieces->apart) return TR_ENOMEM;
    struct sizes sizes = sizes_of(strategy->job, self->options.factors, pieces->apart);
    if (sizes.spared > 0) {
        pieces->x = tr_alloc_aligned((size_t)sizes.x, sizeof *pieces->x);
        pieces->gradient = tr_alloc_aligned((size_t)sizes.piece, sizeof *pieces->gradient);
        if (!pieces->x || !pieces->gradient) return TR_ENOMEM;
        strategy->memory += (size_t)(sizes.x + sizes.piece) * sizeof(float);
        self->part.apart = pieces->apart;
    } else {
        tr_free(pieces->apart);
        pieces->apart = NULL;
    }
    return TR_OK;
}

void all_reduce_release_pieces(struct all_reduce *self)
{
    tr_free(self->pieces.apart);
    tr_free(self->pieces.x);
    tr_free(self->pieces.gradient);
    self->pieces = (struct pieces){0};
}

/* ---- a step ---- */

/* The gradient of the weights of all inputs, over the microbatches of `whole`, as one node. */
static struct tr_op_dense_backward_weights gradient_of(const struct tr_layer *layer, const float *x,
                                                       const float *dy, const struct tr_pass_batch *batch,
                                                       const int32_t whole[2])
{
    return (struct tr_op_dense_backward_weights){
        .in = tr_shape_count(&layer->in[0]),
        .out = tr_shape_count(&layer->out),
        .x = x,
        .dy = dy,
        .cut = {batch->microbatches, batch->example_row, 1, whole, 0},
    };
}

/* The gradient of the weights of `inputs` inputs from `first` on. */
static tr_status form(struct all_reduce *self, const struct tr_layer *layer, int64_t first, int64_t inputs,
                      const float *x, const float *dy, const struct tr_pass_batch *batch)
{
    const int32_t whole[2] = {0, batch->microbatches};
    struct tr_op_dense_backward_weights op = gradient_of(layer, self->pieces.x, dy, batch, whole);
    float *to = self->pieces.x;
    for (int64_t row = 0; row < batch->examples; row++, to += inputs)
        memcpy(to, x + row * op.in + first, (size_t)inputs * sizeof *to);
    op.in = inputs;
    op.dw = self->pieces.gradient;
    return tr_device_dense_backward_weights(self->head.device, &op);
}

/* The sums of the whole step, which lie after the gradient. */
static tr_status learn_of_loss(struct all_reduce *self)
{
    tr_strategy *strategy = &self->head;
    float sums[TR_PASS_SUMS];
    const float *slots = tr_gradient_slots(strategy->replicas->gradient);
    if (strategy->open) return TR_OK;
    TR_TRY(
        tr_device_to_host(strategy->device, sums, slots + strategy->job->model->arena_floats, sizeof sums));
    TR_TRY(tr_device_wait(strategy->device));
    tr_driver_open(strategy, sums);
    return TR_OK;
}

/* All of it in one operation, where that pays, the device has the operation, and the update is a single
   one. False: nothing was done. */
static bool fuse(struct all_reduce *self, const struct tr_layer *layer, int64_t begin, const float *x,
                 const float *dy, const struct tr_pass_batch *batch, tr_status *status)
{
    tr_device *device = self->head.device;
    const int32_t whole[2] = {0, batch->microbatches};
    struct tr_op_dense_backward_update op = {.weights = gradient_of(layer, x, dy, batch, whole)};
    if (!is_fused(layer) || !device->class->dense_backward_update ||
        !tr_driver_update_of(&self->head, begin, begin + op.weights.in * op.weights.out, &op.update))
        return false;
    *status = tr_device_dense_backward_update(device, &op);
    return true;
}

/* Computes and applies the gradient of a layer's weights. */
static tr_status take_rows(void *user, int index, const float *x, const float *dy,
                           const struct tr_pass_batch *batch)
{
    struct all_reduce *self = user;
    const struct tr_model *model = self->head.job->model;
    const struct tr_layer *layer = &model->layers[index];
    const int64_t in = tr_shape_count(&layer->in[0]), out = tr_shape_count(&layer->out);
    const int64_t begin = model->parameters[layer->parameter[0]].offset, most = inputs_of(layer);
    TR_TRY(learn_of_loss(self));
    if (self->head.spoilt) return TR_OK;
    tr_status status;
    if (fuse(self, layer, begin, x, dy, batch, &status)) return status;
    for (int64_t first = 0, inputs; first < in; first += inputs) {
        inputs = in - first < most ? in - first : most;
        TR_TRY(form(self, layer, first, inputs, x, dy, batch));
        TR_TRY(tr_driver_update(&self->head, self->pieces.gradient, begin + first * out,
                                begin + (first + inputs) * out));
    }
    return TR_OK;
}

void all_reduce_take_pieces(struct all_reduce *self)
{
    if (self->pieces.apart)
        tr_gradient_leave_apart(self->head.replicas->gradient, self->pieces.apart, take_rows, self);
}

/* Updates the ranges between the weights that are updated already. */
static tr_status update_rest(struct all_reduce *self, const float *gradient)
{
    const struct tr_model *model = self->head.job->model;
    int64_t begin = 0;
    for (int i = 0; i < model->layer_count; i++) {
        if (!self->pieces.apart[i]) continue;
        const struct tr_parameter *weights = &model->parameters[model->layers[i].parameter[0]];
        if (begin < weights->offset)
            TR_TRY(tr_driver_update(&self->head, gradient + begin, begin, weights->offset));
        begin = weights->offset + weights->count;
    }
    return tr_driver_update(&self->head, gradient + begin, begin, model->arena_floats);
}

tr_status all_reduce_compute_in_pieces(struct all_reduce *self, int64_t step, struct tr_combined *out)
{
    TR_TRY(tr_driver_compute_alone(&self->head, step, out));
    if (out->examples == 0) return TR_OK;
    out->applied = true;
    return update_rest(self, out->gradient);
}
