/* Memory of a pass: one planned block, laid out by the lifetimes of a step.
 *
 * Events of a step with n layers: layer i runs forward at i, the loss at n, layer i backward at 2n - i. The
 * input is written at -1. A fusion (nn/fusion.h) runs at the last event of its layers, and what is between
 * them has no memory; only where outputs are observed its layers run one by one. Of a range, the entry is
 * written at -1, the exit is sent and its gradient received at n; the entry's gradient has separate memory,
 * since it may be on its way while the next rows come in. A layer that is computed again (recompute.c) has
 * memory twice: until forward has gone on, and from the event on before which it runs again.
 */
#include "nn/pass/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/cut.h"
#include "tensor/planner.h"

#include <assert.h>

/* The owner of a planned buffer. */
struct claim {
    void **place, **also; /* also: a second pointer to the same memory, or NULL */
    struct tr_interval interval;
};

struct plan {
    struct claim *claims;
    size_t count, most;
    int end; /* the last event */
};

static struct claim *claim(struct plan *plan, void *place, int64_t bytes, int first, int last)
{
    assert(plan->count < plan->most);
    assert(bytes >= 0 && -1 <= first && first <= last && last <= plan->end);
    struct claim *made = &plan->claims[plan->count++];
    *made = (struct claim){place, NULL, {(size_t)bytes, first, last, 0}};
    return made;
}

static int backward_event(const struct tr_model *model, int layer)
{
    return 2 * model->layer_count - layer;
}

/* The events at which a layer runs with its fusion. */
static int last_forward(const struct tr_pass *pass, int layer)
{
    return pass->layer[layer].fusion.end;
}

static int last_backward(const struct tr_pass *pass, int layer)
{
    return backward_event(pass->model, pass->layer[layer].fusion.head);
}

/* Marks the layers through which a gradient must flow: those with parameters, and all layers after them. */
static void mark_gradients(struct tr_pass *pass)
{
    for (int i = 0; i < pass->model->layer_count; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        pass->layer[i].wants =
            layer->parameter_count > 0 || layer->sharer_of > 0 ||
            (layer->tie.lender >= 0 && !tr_layer_is_base(&pass->model->layers[layer->tie.lender]));
        for (int k = 0; k < layer->input_count; k++)
            if (layer->input[k] >= 0 && pass->layer[layer->input[k]].wants) pass->layer[i].wants = true;
    }
}

/* Finds the fusions whose layers are all within the range. */
static void find_fusions(struct tr_pass *pass, const tr_device *device)
{
    const int end = pass->limits.end_layer;
    for (int i = pass->limits.first_layer; i < end;) {
        struct tr_fusion found = {i, i, -1, 0};
        if (pass->limits.training) found = tr_fusion_at(pass->model, device ? device->class : NULL, i, end);
        /* Where no gradient flows through the head, backward of the other layers runs separately. */
        for (int k = i; k <= found.end && !pass->layer[i].wants; k++)
            if (pass->layer[k].wants) found = (struct tr_fusion){i, i, -1, 0};
        for (; i <= found.end; i++) pass->layer[i].fusion = found;
    }
}

/* The event before which a group runs again; that of its forward if no layer needs it. */
static int again_event(const struct tr_pass *pass, int group)
{
    const int trigger = pass->group[group].trigger;
    return trigger < 0 ? pass->group[group].first : backward_event(pass->model, trigger);
}

/* The same for a layer that is computed again. */
static int again_of(const struct tr_pass *pass, int i)
{
    return again_event(pass, pass->layer[i].group);
}

/* The last event of forward that reads the output of a layer. */
static int last_forward_use(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    int last = last_forward(pass, source);
    for (int i = source + 1; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count && !layer->alias; k++)
            if (tr_model_source(model, layer->input[k]) == source && last_forward(pass, i) > last)
                last = last_forward(pass, i);
    }
    return last;
}

/* The last event that reads the output of `source` (-1: the input). */
static int last_use(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    bool training = pass->limits.training;
    int last = source;
    if (source > pass->entry && training && model->layers[source].keeps_output)
        last = last_backward(pass, source);
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count; k++) {
            if (layer->alias || tr_model_source(model, layer->input[k]) != source) continue;
            int use = training && layer->keeps_input ? last_backward(pass, i) : last_forward(pass, i);
            if (use > last) last = use;
            if (pass->layer[i].again && again_of(pass, i) > last) last = again_of(pass, i);
        }
    }
    if (source == pass->exit && last < model->layer_count) last = model->layer_count;
    return last;
}

/* The first event at which a gradient of the output of `source` is written: the backward of its last
 * consumer. */
static int first_gradient(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    if (source == pass->exit) return model->layer_count;
    for (int i = pass->limits.end_layer - 1; i > source; i--) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count; k++)
            if (!layer->alias && tr_model_source(model, layer->input[k]) == source)
                return backward_event(model, i);
    }
    return backward_event(model, source);
}

static bool ends_fusion(const struct tr_pass *pass, int i)
{
    return tr_fusion_joins(&pass->layer[i].fusion) && pass->layer[i].fusion.end == i;
}

/* The end of the fusion that turns its gradient, in place, into that of the layer before it, `source`: it
   writes dx in place of dy and is the only one that takes the layer's output. -1: none. */
static int gradient_replaced(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    if (!pass_has(pass, source) || tr_fusion_joins(&pass->layer[source].fusion)) return -1;
    if (tr_model_consumers(model, source) != 1) return -1;
    for (int i = source + 1; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        if (layer->alias || tr_model_source(model, layer->input[0]) != source) continue;
        const struct tr_fusion *fusion = &pass->layer[i].fusion;
        const bool replaces =
            layer->class->fusing.replaces_dy && tr_fusion_joins(fusion) && fusion->head == i;
        return replaces && fusion->end != pass->exit ? fusion->end : -1;
    }
    return -1;
}

static void claim_gradient(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const int before = tr_model_source(model, model->layers[pass->layer[i].fusion.head].input[0]);
    const int end = gradient_replaced(pass, i);
    if (pass_is_within(pass, i) ||
        (before >= 0 && pass->layer[before].wants && gradient_replaced(pass, before) == i))
        return; /* it is claimed there */
    struct claim *gradient =
        claim(plan, &pass->layer[i].gradient, pass_output_bytes(&pass->limits, &model->layers[i]),
              first_gradient(pass, end >= 0 ? end : i), last_backward(pass, i));
    if (end >= 0) gradient->also = &pass->layer[end].gradient;
}

/* Claims the data of a layer that is computed again, twice. */
static void claim_again(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    const int begin = again_of(pass, i),
              last = last_backward(pass, i) > begin ? last_backward(pass, i) : begin;
    const bool runs = pass->group[pass->layer[i].group].trigger >= 0;
    for (int set = 0; set < 1 + runs; set++) {
        struct pass_set *own = &pass->layer[i].set[set];
        const int last_output = last_use(pass, i) > begin ? last_use(pass, i) : begin;
        if (!pass_is_within(pass, i))
            claim(plan, &own->output, pass_output_bytes(&pass->limits, layer), set ? begin : i,
                  set ? last_output : last_forward_use(pass, i));
        for (int k = 0; k < layer->buffer_count; k++) {
            const struct tr_buffer *buffer = &layer->buffer[k];
            if (buffer->backward_only || (buffer->fused_only && !ends_fusion(pass, i))) continue;
            claim(plan, &own->buffer[k], pass_buffer_bytes(&pass->limits, layer, k), set ? begin : i,
                  !set                   ? last_forward(pass, i)
                  : buffer->forward_only ? begin
                                         : last);
        }
    }
}

/* Tokens that come from outside, which backward reads, too. */
static bool is_text(const struct tr_layer *layer)
{
    return layer->fed && layer->out.sequence;
}

static void claim_layer(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const struct tr_layer *layer = &model->layers[i];
    const struct tr_pass_limits *limits = &pass->limits;
    int backward = backward_event(model, i), last = last_backward(pass, i);
    if (layer->alias) return;
    const bool again = pass->layer[i].again;
    if (again)
        claim_again(pass, plan, i);
    else if (!pass_is_within(pass, i))
        claim(plan, &pass->layer[i].output, pass_output_bytes(limits, layer), layer->fed ? -1 : i,
              is_text(layer) ? plan->end : last_use(pass, i));
    for (int k = 0; k < layer->buffer_count; k++) {
        const struct tr_buffer *buffer = &layer->buffer[k];
        if (buffer->backward_only && !(limits->training && pass->layer[i].wants)) continue;
        if (buffer->fused_only && !ends_fusion(pass, i)) continue;
        if (again && !buffer->backward_only) continue; /* it has been given those */
        const bool stays = limits->training && !buffer->forward_only;
        /* What comes from a layer after the range may come once forward is done. */
        claim(plan, &pass->layer[i].buffer[k], pass_buffer_bytes(limits, layer, k),
              buffer->from >= limits->end_layer ? model->layer_count
              : buffer->from > 0                ? backward_event(model, buffer->from)
              : buffer->backward_only           ? backward
                                                : i,
              stays ? last : last_forward(pass, i));
    }
    if (!limits->training || !pass->layer[i].wants) return;
    const int64_t waste = pass_waste_bytes(model, i);
    if (waste > 0) claim(plan, &pass->layer[i].waste, limits->microbatches * waste, backward, last);
    claim_gradient(pass, plan, i);
    /* Room for a second contribution to an input's gradient. It is added when both are computed or, at the
       end of a fusion, when that runs. */
    for (int k = 0; k < layer->input_count; k++) {
        int source = tr_model_source(model, layer->input[k]);
        if (source >= 0 && pass->layer[source].wants && tr_model_consumers(model, source) > 1)
            claim(plan, &pass->layer[i].addend[k],
                  pass_bytes(limits, &layer->in[k],
                             k > 0 && layer->class->two_lengths ? layer->tokens_memory : layer->tokens_in),
                  backward,
                  source >= limits->first_layer && last_backward(pass, source) > last
                      ? last_backward(pass, source)
                      : last);
    }
}

/* Gradients of shared parameters, microbatch by microbatch: their sum, from the first layer in backward to
   the last, and a later layer's contribution. */
static void claim_shared(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    if (!pass_shares(model, i) || !pass->limits.training) return;
    const int owner = pass_owner(model, i);
    const int64_t bytes = pass->limits.microbatches * pass_share_bytes(model, i);
    const int backward = backward_event(model, i), last = last_backward(pass, i);
    if (i == pass_last_use(model, owner))
        claim(plan, &pass->layer[owner].sum, bytes, backward, last_backward(pass, owner));
    else
        claim(plan, &pass->layer[i].own, bytes, backward, last);
}

/* A borrower's contribution for a lender elsewhere may be being sent while the next rows arrive. */
static void claim_leaves(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const int lender = model->layers[i].tie.lender;
    if (lender < 0 || pass_has(pass, lender) || !pass->limits.training) return;
    if (tr_layer_is_base(&model->layers[lender])) return;
    int64_t bytes = model->parameters[model->layers[lender].parameter[0]].count * (int64_t)sizeof(float);
    claim(plan, &pass->layer[i].leaves, pass->limits.microbatches * bytes, -1, 2 * model->layer_count + 1);
}

static void claim_entry(struct tr_pass *pass, struct plan *plan, int end)
{
    int64_t bytes = pass_output_bytes(&pass->limits, &pass->model->layers[pass->entry]);
    claim(plan, &pass->layer[pass->entry].output, bytes, -1, last_use(pass, pass->entry));
    if (pass->limits.training && pass->layer[pass->entry].wants)
        claim(plan, &pass->layer[pass->entry].gradient, bytes, -1, end);
}

static void claim_ends(struct tr_pass *pass, struct plan *plan)
{
    const struct tr_model *model = pass->model;
    const struct tr_pass_limits *limits = &pass->limits;
    int end = limits->training ? 2 * model->layer_count + 1 : model->layer_count;
    int64_t examples = limits->examples;
    if (pass->entry >= 0)
        claim_entry(pass, plan, end);
    else if (model->vocabulary > 0)
        claim(plan, &pass->token, limits->tokens * (int64_t)sizeof(int32_t), -1, end);
    else
        claim(plan, &pass->input, pass_bytes(limits, &model->input, 0), -1, last_use(pass, -1));
    if (model->input.sequence) claim(plan, &pass->offset, (examples + 1) * (int64_t)sizeof(int32_t), -1, end);
    if (model->second_text[0])
        claim(plan, &pass->second.offset, (examples + 1) * (int64_t)sizeof(int32_t), -1, end);
    if (!pass_is_last(pass)) return;
    int64_t compared =
        pass_units(limits, model->output.sequence, model->layers[model->layer_count - 1].tokens_out);
    if (model->loss.mixes && limits->training)
        claim(plan, &pass->target, compared * tr_shape_count(&model->output) * (int64_t)sizeof(float), -1,
              end);
    else if (tr_loss_class_of(&model->loss)->classifies)
        claim(plan, &pass->label, compared * tr_loss_labels(&model->loss) * (int64_t)sizeof(int32_t), -1,
              end);
    else
        claim(plan, &pass->target,
              compared * tr_loss_targets(&model->loss, tr_shape_count(&model->output)) *
                  (int64_t)sizeof(float),
              -1, end);
    int64_t scratch = tr_loss_scratch(&model->loss, tr_shape_count(&model->output), compared);
    if (scratch > 0) claim(plan, &pass->scratch, scratch, model->layer_count, model->layer_count);
    claim(plan, &pass->loss_rows, compared * (int64_t)sizeof(float), model->layer_count, end);
    claim(plan, &pass->correct_rows, compared * (int64_t)sizeof(float), model->layer_count, end);
}

/* Gives every claim its place in the block of `total` bytes; claims that live at the same time do not
   overlap. */
static void settle(const struct plan *plan, const struct tr_interval *interval, void *memory, size_t total)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct claim *claim = &plan->claims[i];
        assert(!*claim->place && (!claim->also || !*claim->also));
        assert(interval[i].offset <= total && interval[i].bytes <= total - interval[i].offset);
        *claim->place = (char *)memory + interval[i].offset;
        if (claim->also) *claim->also = *claim->place;
    }
}

#ifndef NDEBUG
/* What running relies on: tensors that a layer reads or writes have memory, and tensors that none reads
   have none. */
static bool is_settled(const struct tr_pass *pass, int i)
{
    const struct tr_model *model = pass->model;
    const struct pass_layer *at = &pass->layer[i];
    const struct tr_layer *layer = &model->layers[i];
    const bool alone = !layer->alias && !pass_is_within(pass, i), learns = pass->limits.training && at->wants;
    if (!at->output != !alone || !at->gradient != !(alone && learns)) return false;
    for (int k = 0; k < layer->input_count && !layer->alias; k++) {
        const int source = tr_model_source(model, layer->input[k]);
        const bool several = source >= 0 && tr_model_consumers(model, source) > 1;
        if (!at->addend[k] != !(learns && several && pass->layer[source].wants)) return false;
    }
    return true;
}
#endif

void pass_load_set(struct tr_pass *pass, int i, int set)
{
    struct pass_layer *at = &pass->layer[i];
    const struct tr_layer *layer = &pass->model->layers[i];
    if (!at->again) return;
    if (at->set[set].output) at->output = at->set[set].output;
    for (int k = 0; k < layer->buffer_count; k++)
        if (at->set[set].buffer[k]) at->buffer[k] = at->set[set].buffer[k];
}

/* Claims for the layers that are computed again, as intervals. */
static tr_status measure(struct tr_pass *pass, struct plan *plan, struct tr_interval *intervals,
                         size_t *bytes)
{
    plan->count = 0;
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        claim_layer(pass, plan, i);
        claim_leaves(pass, plan, i);
        claim_shared(pass, plan, i);
    }
    claim_ends(pass, plan);
    for (size_t i = 0; i < plan->count; i++) intervals[i] = plan->claims[i].interval;
    return tr_plan(intervals, plan->count, bytes);
}

/* Sizes of groups to try, as parts of the bytes that forward leaves; the one that takes the least memory
   is chosen. The last one stands for groups as small as possible. */
static const int64_t shares[] = {2, 3, 4, 6, 8, 12, 16, 24, 1 << 20};

/* The choice does not change the bits. */
static tr_status choose_groups(struct tr_pass *pass, struct plan *plan, struct tr_interval *intervals)
{
    const struct tr_model *model = pass->model;
    int *cut = tr_alloc((size_t)model->layer_count + 1, sizeof *cut);
    if (!cut) return TR_ENOMEM;
    const int cuts = tr_model_cuts(model, cut);
    int64_t all = pass_recompute_in_pieces(pass, cut, cuts, INT64_MAX), best = 0;
    size_t least, bytes;
    pass_recompute_named(pass); /* none is named: no groups, for comparison */
    tr_status status = measure(pass, plan, intervals, &least);
    for (size_t n = 0; n < sizeof shares / sizeof *shares && status == TR_OK; n++) {
        const int64_t size = all / shares[n] + 1;
        pass_recompute_in_pieces(pass, cut, cuts, size);
        status = measure(pass, plan, intervals, &bytes);
        if (status != TR_OK || bytes >= least) continue;
        least = bytes;
        best = size;
    }
    if (best > 0)
        pass_recompute_in_pieces(pass, cut, cuts, best);
    else
        pass_recompute_named(pass);
    tr_free(cut);
    return status;
}

tr_status pass_lay_out(struct tr_pass *pass, const tr_device *device, size_t *bytes)
{
    const struct tr_pass_limits *limits = &pass->limits;
    struct plan plan = {
        .most = (size_t)pass->model->layer_count * (6 + 2 * TR_LAYER_BUFFERS + TR_LAYER_INPUTS) + 10,
        .end = 2 * pass->model->layer_count + 1,
    };
    plan.claims = tr_alloc(plan.most, sizeof *plan.claims);
    struct tr_interval *intervals = tr_alloc(plan.most, sizeof *intervals);
    tr_status status = plan.claims && intervals ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    mark_gradients(pass);
    find_fusions(pass, device);
    pass_recompute_named(pass);
    if (limits->training && pass->model->recompute) TR_TRY_GOTO(choose_groups(pass, &plan, intervals), out);
    TR_TRY_GOTO(measure(pass, &plan, intervals, bytes), out);
    if (!pass->device) goto out;
    TR_TRY_GOTO(tr_device_alloc(pass->device, *bytes ? *bytes : 1, &pass->memory), out);
    settle(&plan, intervals, pass->memory, *bytes);
    for (int i = limits->first_layer; i < limits->end_layer; i++) pass_load_set(pass, i, 0);
    for (int i = limits->first_layer; i < limits->end_layer; i++) assert(is_settled(pass, i));
out:
    tr_free(plan.claims);
    tr_free(intervals);
    return status;
}
