/* The arguments of a call of a layer or fusion, and its timing. */
#include "nn/pass/internal.h"

#include "base/numbers/rng.h"
#include "base/threads/timeline.h"

#include <assert.h>
#include <string.h>

/* Weights shared with a layer of another range are a copy; the contribution to their gradient stays with
   the borrower until it is read there. */
static struct tr_layer_borrowed borrowed_by(const struct tr_pass *pass, int i, const float *parameters)
{
    const struct tr_model *model = pass->model;
    const int number = model->layers[i].tie.lender;
    const struct tr_layer *lender = &model->layers[number];
    if (tr_layer_is_base(lender)) return (struct tr_layer_borrowed){pass->base[-1 - lender->slot[0]], NULL};
    if (!pass_has(pass, number))
        return (struct tr_layer_borrowed){pass->layer[i].lent, pass->layer[i].leaves};
    return (struct tr_layer_borrowed){parameters + model->parameters[lender->parameter[0]].offset,
                                      pass->layer[number].buffer[lender->tie.buffer]};
}

void pass_fill_call(struct tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                    float *gradients, int i, struct tr_layer_call *call)
{
    const struct tr_model *model = pass->model;
    const struct tr_layer *layer = &model->layers[i];
    const struct pass_length *length = pass_length_of(pass, layer->tokens_in),
                             *memory = pass_length_of(pass, layer->tokens_memory);
    tr_rng_key key = tr_rng_key_make(batch->seed, TR_RNG_DROPOUT);
    *call = (struct tr_layer_call){
        .device = pass->device,
        .layer = layer,
        .training = pass->limits.training,
        .examples = batch->examples,
        .rows = pass_rows(batch, pass_is_sequence(layer), layer->tokens_in),
        .global_rows = batch->global_examples,
        .offset = length ? length->offset : pass->offset,
        .memory_rows = pass_rows(batch, true, layer->tokens_memory),
        .memory_offset = memory ? memory->offset : pass->offset,
        .token = pass->token,
        .layer_number = (uint32_t)i,
        .first_example = batch->first_example,
        .dropout_key = {key.k0, key.k1},
        .scalars = batch->scalars,
        .y = pass->layer[i].output,
        .dy = pass->layer[i].gradient,
    };
    for (int k = 0; k < layer->input_count; k++) {
        int source = tr_model_source(model, layer->input[k]);
        call->x[k] = source < 0 ? pass->input : pass->layer[source].output;
        if (source >= 0 && model->layers[source].fed && layer->in[k].sequence)
            call->token = pass->layer[source].output;
    }
    memcpy(call->buffer, pass->layer[i].buffer, sizeof call->buffer);
    if (layer->tie.lender >= 0) call->borrowed = borrowed_by(pass, i, parameters);
    float *waste = pass->layer[i].waste;
    for (int k = 0; k < layer->slot_count; k++) {
        if (layer->slot[k] < 0) {
            call->parameter[k] = pass->base[-1 - layer->slot[k]];
            call->gradient[k] = gradients ? waste : NULL;
            if (waste) waste += model->base[-1 - layer->slot[k]].count;
            continue;
        }
        int64_t offset = model->parameters[layer->slot[k]].offset;
        call->parameter[k] = parameters + offset;
        if (gradients) call->gradient[k] = gradients + (offset - pass->arena_begin);
    }
}

bool pass_is_gelu(const struct tr_layer_tail *tail)
{
    return tail->activation == TR_ACT_GELU || tail->activation == TR_ACT_GELU_TANH;
}

void pass_extend_call(const struct tr_pass *pass, const struct tr_fusion *fusion, struct tr_layer_tail *tail,
                      struct tr_layer_call *call)
{
    const struct tr_model *model = pass->model;
    *tail = tr_fusion_tail(model, fusion);
    if (fusion->sum >= 0) {
        int source = tr_model_source(model, model->layers[fusion->sum].input[fusion->addend]);
        tail->addend = source < 0 ? pass->input : pass->layer[source].output;
    }
    if (tail->pool) tail->taken = pass->layer[fusion->end].buffer[0];
    if (pass_is_gelu(tail)) tail->derivative = pass->layer[fusion->end].buffer[0];
    assert(!tail->pool || tail->taken);
    assert(!pass_is_gelu(tail) || tail->derivative);
    call->y = pass->layer[fusion->end].output;
    call->dy = pass->layer[fusion->end].gradient;
    call->tail = tail;
}

const struct pass_length *pass_length_of(const struct tr_pass *pass, int64_t tokens)
{
    if (tokens < 0) return &pass->second;
    for (int i = 0; i < pass->length_count; i++)
        if (pass->length[i].tokens == tokens) return &pass->length[i];
    return NULL;
}

struct tr_cut pass_make_cut(const struct tr_pass *pass, const struct tr_pass_batch *batch, bool sequence,
                            int64_t each, int64_t stride)
{
    const struct pass_length *length = pass_length_of(pass, each);
    const int64_t *row = !sequence ? batch->example_row : length ? length->row : batch->token_row;
    return (struct tr_cut){batch->microbatches, row, batch->nodes, batch->node_bound, stride};
}

void pass_begin_lengths(struct tr_pass *pass, const struct tr_pass_batch *batch)
{
    for (int k = 0; k < pass->length_count && batch->example_row; k++)
        for (int32_t i = 0; i <= batch->microbatches; i++)
            pass->length[k].row[i] = batch->example_row[i] * pass->length[k].tokens;
    pass->second.row = (int64_t *)batch->second_row;
}

tr_status pass_end_span(const struct tr_pass *pass, tr_status status)
{
    const tr_device *device = pass->device;
    if (status == TR_OK && !device->class->host_memory && !device->timed && tr_timeline_current())
        status = tr_device_wait(pass->device);
    tr_span_end();
    return status;
}
