/* The structure of a pass, shared by its life (pass.c), its layout (layout.c), its running (call.c, run.c,
 * backward.c) and its interface to others (ports.c).
 */
#ifndef TR_NN_PASS_INTERNAL_H
#define TR_NN_PASS_INTERNAL_H

#include "base/threads/timeline.h"
#include "nn/fusion.h"
#include "nn/pass/pass.h"

/* The state of one layer in a pass. For layers outside of its range, an entry has an output and a
   gradient, a borrower or lender a copy; all else is NULL. Memory is void * where the layout sets it. */
struct pass_layer {
    void *output;   /* NULL for an alias, and within a fusion unless there is an observer */
    void *gradient; /* of the output; NULL where no gradient flows */
    void *buffer[TR_LAYER_BUFFERS];
    void *addend[TR_LAYER_INPUTS]; /* second contributions; NULL where there is only one consumer */
    void *leaves;                  /* for a borrower whose lender is not in the range, see tr_pass_tie() */
    const float *lent;             /* the borrower's copy of the lender's parameter */
    void *waste;                   /* in backward, for gradients of the base that are computed but
                                      discarded */
    void *sum, *own;               /* for layers that share parameters, see share.c */
    /* For a layer that is computed again: the memory of forward (0), and of recomputation and backward
       (1). */
    struct pass_set {
        void *output, *buffer[TR_LAYER_BUFFERS];
    } set[2];
    bool again;
    int group;               /* in the pass's list, or -1 */
    struct tr_fusion fusion; /* of a layer of the range */
    bool wants;              /* a gradient flows through it */
    /* In backward: */
    bool written;      /* the output's gradient has its first contribution */
    const float *more; /* what the end of a fusion must add to its gradient */
};

/* Layers [first, end) that run forward again before the backward of layer `trigger`; -1: none needs them. */
struct pass_group {
    int first, end, trigger;
};

/* Sequences with the same number of tokens in every example, which layers make from images; or those of the
   second text. */
struct pass_length {
    int64_t tokens;
    void *offset; /* device int32_t [examples + 1], set once; of the second text, in every run */
    int64_t *row; /* [microbatches + 1]: the first token of each, in a run; of the second text borrowed */
};

struct tr_pass {
    tr_device *device;
    const struct tr_model *model;
    struct tr_pass_limits limits;   /* end_layer resolved */
    int64_t arena_begin, arena_end; /* of the range's parameters */
    /* The layers that hold the tensors at the range's ends: entry is -1 with layer 0, else its output and
       gradient stand for the tensors that the pass receives and gives back. */
    int entry, exit;
    const float *const *base; /* the model's base on the device, or NULL */
    void *memory;
    void *spare;                /* outputs within fusions, for an observer; NULL until there is one */
    struct pass_length *length; /* [length_count], for sequences made from images */
    int length_count;
    struct pass_length second; /* of the second text: the offsets inside `memory`, the rows of a run */
    tr_pass_observer observer;
    void *observer_user;
    tr_pass_listener listener;
    void *listener_user;
    tr_pass_companion companion;
    void *companion_user;
    const bool *apart; /* [layers], or NULL */
    tr_pass_taker taker;
    void *taker_user;
    /* Device memory inside `memory`; void *, since the planner sets them. */
    void *input, *token, *offset, *label, *target, *scratch, *loss_rows, *correct_rows;
    const float *teacher;     /* scores, see tr_pass_teach(); or NULL */
    void *weight;             /* of the classes, separate device memory, or NULL */
    struct pass_layer *layer; /* [layers] */
    int32_t *single;          /* [microbatches + 1]: nodes of one microbatch each */
    struct pass_group *group; /* [layers]: room for all; the last group of the network comes first */
    int group_count;
};

/* The rows of a value in a run: examples, or tokens: `each` per example, or 0 where the data determine it, or
   TR_TOKENS_OF_SECOND. */
static inline int64_t pass_rows(const struct tr_pass_batch *batch, bool sequence, int64_t each)
{
    if (!sequence) return batch->examples;
    return each > 0 ? batch->examples * each : each < 0 ? batch->second_tokens : batch->tokens;
}

/* The rows of a layer's output. */
static inline int64_t pass_rows_out(const struct tr_pass_batch *batch, const struct tr_layer *layer)
{
    return pass_rows(batch, layer->out.sequence, layer->tokens_out);
}

/* Whether a layer is in the range. */
static inline bool pass_has(const struct tr_pass *pass, int layer)
{
    return layer >= pass->limits.first_layer && layer < pass->limits.end_layer;
}

/* Bytes of a microbatch's gradients of the base that a layer computes and discards; 0: it skips them. */
static inline int64_t pass_waste_bytes(const struct tr_model *model, int i)
{
    const struct tr_layer *layer = &model->layers[i];
    int64_t floats = 0;
    if (!tr_layer_is_base(layer) || layer->class->skips_gradients) return 0;
    for (int k = 0; k < layer->slot_count; k++) floats += tr_model_slot(model, layer->slot[k])->count;
    return floats * (int64_t)sizeof(float);
}

/* Whether the pass computes the network's last layer, and so the loss. */
static inline bool pass_is_last(const struct tr_pass *pass)
{
    return pass->limits.end_layer == pass->model->layer_count;
}

/* ---- share.c ---- */

/* The layer that owns the parameters of layer `i`: another one where they are shared. */
static inline int pass_owner(const struct tr_model *model, int i)
{
    const int other = model->layers[i].sharer_of;
    return other > 0 ? other - 1 : i;
}

/* Whether the gradients of a layer are added to those of others. */
static inline bool pass_shares(const struct tr_model *model, int i)
{
    return model->layers[i].shared || model->layers[i].sharer_of > 0;
}

/* The last layer that uses the parameters of `owner`, which is the first one in backward. */
int pass_last_use(const struct tr_model *model, int owner);
/* Bytes of the gradients of a microbatch of such a layer. */
int64_t pass_share_bytes(const struct tr_model *model, int i);
/* Makes backward of a layer leave its gradients microbatch by microbatch: changes the call and its cuts,
 * in `cut`.
 */
void pass_begin_share(const struct tr_pass *pass, const struct tr_pass_batch *batch, int i,
                      struct tr_layer_call *call, struct tr_cut cut[3]);
/* Adds the gradients that backward left; for the owner, computes the nodes. `cut` is the original one of
   the call. */
tr_status pass_end_share(const struct tr_pass *pass, const struct tr_cut *cut, int i, float *gradients);

/* Whether the output of layer `i` is written only for an observer: it is within a fusion. */
static inline bool pass_is_within(const struct tr_pass *pass, int i)
{
    return i < pass->layer[i].fusion.end;
}

/* The largest number of rows that a pass supports, see pass_rows(), and bytes of so many rows of a shape. */
static inline int64_t pass_units(const struct tr_pass_limits *limits, bool sequence, int64_t each)
{
    if (!sequence) return limits->examples;
    return each > 0 ? limits->examples * each : each < 0 ? limits->second_tokens : limits->tokens;
}

static inline int64_t pass_bytes(const struct tr_pass_limits *limits, const struct tr_shape *shape,
                                 int64_t each)
{
    return pass_units(limits, shape->sequence, each) * tr_shape_count(shape) * (int64_t)sizeof(float);
}

static inline int64_t pass_output_bytes(const struct tr_pass_limits *limits, const struct tr_layer *layer)
{
    return pass_bytes(limits, &layer->out, layer->tokens_out);
}

/* Plans the block for `device` (NULL: one that has all operations) and sets *bytes. A pass with a device
   also gets the block, and all its pointers are set. */
tr_status pass_lay_out(struct tr_pass *pass, const tr_device *device, size_t *bytes);

/* Chooses the layers that are computed again: those that the model names; or groups between places where
   the network can be cut, each with as many layers as leave `least` bytes to backward. Returns the bytes
   of all. */
void pass_recompute_named(struct tr_pass *pass);
int64_t pass_recompute_in_pieces(struct tr_pass *pass, const int *cut, int cuts, int64_t least);
/* Runs the groups again that the backward of a layer needs. */
tr_status pass_recompute_before(struct tr_pass *pass, const struct tr_pass_batch *batch, int layer,
                                const float *parameters, float *gradients, int64_t stride);
/* Makes layer `i` use a set of its memory, if it is computed again. */
void pass_load_set(struct tr_pass *pass, int i, int set);
/* Forward of the layers [first, end). */
tr_status pass_run_forward(struct tr_pass *pass, const struct tr_pass_batch *batch, int first, int end,
                           const float *parameters, float *gradients, int64_t stride);

/* The rows of a call with the layer's buffers of this kind, at most. */
static inline int64_t pass_buffer_units(const struct tr_pass_limits *limits, const struct tr_layer *layer,
                                        enum tr_buffer_unit unit)
{
    switch (unit) {
    case TR_PER_EXAMPLE:
        return limits->examples;
    case TR_PER_ROW:
        return pass_units(limits, layer->in[0].sequence, layer->tokens_in);
    case TR_PER_MEMORY_ROW:
        return pass_units(limits, true, layer->tokens_memory);
    default:
        return limits->microbatches;
    }
}

/* The bytes of a layer's buffer, for all rows. */
static inline int64_t pass_buffer_bytes(const struct tr_pass_limits *limits, const struct tr_layer *layer,
                                        int k)
{
    const struct tr_buffer *buffer = &layer->buffer[k];
    return pass_buffer_units(limits, layer, buffer->unit) * buffer->bytes + buffer->fixed;
}

/* Whether the rows of a layer's calls are tokens. */
static inline bool pass_is_sequence(const struct tr_layer *layer)
{
    return layer->in[0].sequence;
}

/* Fills in the call of layer `i`, except its cuts and dx. `gradients`: NULL where none are written. */
void pass_fill_call(struct tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                    float *gradients, int i, struct tr_layer_call *call);
/* Turns the call of a fusion's head into that of the fusion, except the gradients of `tail`. */
void pass_extend_call(const struct tr_pass *pass, const struct tr_fusion *fusion, struct tr_layer_tail *tail,
                      struct tr_layer_call *call);
/* Whether a tail is a gelu, whose derivative the fusion leaves for the layer after it. */
bool pass_is_gelu(const struct tr_layer_tail *tail);
/* The cut of a run over examples, or over tokens, see pass_rows(). */
struct tr_cut pass_make_cut(const struct tr_pass *pass, const struct tr_pass_batch *batch, bool sequence,
                            int64_t each, int64_t stride);
/* Notes where the tokens of microbatches begin, in sequences made from images; call it first in a run. */
void pass_begin_lengths(struct tr_pass *pass, const struct tr_pass_batch *batch);
/* Sequences of so many tokens in every example, or of the second text; NULL for 0. */
const struct pass_length *pass_length_of(const struct tr_pass *pass, int64_t tokens);
/* Reports the memory of a call's output to the timeline; its operations report what they compute. */
static inline void pass_tell_memory(const struct tr_pass_batch *batch, const struct tr_layer *layer)
{
    tr_span_work(0, pass_rows_out(batch, layer) * tr_shape_count(&layer->out) * (int64_t)sizeof(float));
}
/* Ends the span of a call. On some devices operations run later than they are called. Where times are
   recorded, and the device does not record its own, this waits for them, so that each layer's time is
   measured. */
tr_status pass_end_span(const struct tr_pass *pass, tr_status status);

/* Allocates the outputs within fusions, once. */
tr_status pass_prepare_observed(struct tr_pass *pass);

/* TR_EUNSUPPORTED, with the layer and the operation, where the device lacks an operation that the pass
   needs. */
tr_status pass_rehearse(struct tr_pass *pass);

#endif
