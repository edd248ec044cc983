/* Gradients of parameters that several layers use.
 *
 * Each layer leaves what a microbatch adds to the gradient (a leaf), whatever the nodes of the pass are.
 * These are added microbatch by microbatch before anything goes into the tree: that of the last layer + that
 * of the one before it, and so on, to that of the layer which has the parameters. So the sum is the same
 * however microbatches are divided. Leaves lie one after the other, each as the parameters lie in an arena.
 */
#include "nn/pass/internal.h"

#include "base/fail.h"
#include "base/numbers/tree.h"

int pass_last_use(const struct tr_model *model, int owner)
{
    int last = owner;
    for (int i = owner + 1; i < model->layer_count; i++)
        if (model->layers[i].sharer_of == owner + 1) last = i;
    return last;
}

/* Floats from the owner's first parameter to one of its parameters. */
static int64_t place_of(const struct tr_model *model, const struct tr_layer *owner, int k)
{
    return model->parameters[owner->slot[k]].offset - model->parameters[owner->slot[0]].offset;
}

static int64_t leaf_floats(const struct tr_model *model, int i)
{
    const struct tr_layer *owner = &model->layers[pass_owner(model, i)];
    const int last = owner->slot_count - 1;
    return place_of(model, owner, last) + model->parameters[owner->slot[last]].count;
}

int64_t pass_share_bytes(const struct tr_model *model, int i)
{
    return leaf_floats(model, i) * (int64_t)sizeof(float);
}

void pass_begin_share(const struct tr_pass *pass, const struct tr_pass_batch *batch, int i,
                      struct tr_layer_call *call, struct tr_cut cut[3])
{
    const struct tr_model *model = pass->model;
    const struct tr_layer *owner = &model->layers[pass_owner(model, i)];
    float *leaves = pass->layer[i].own ? pass->layer[i].own : pass->layer[pass_owner(model, i)].sum;
    cut[0] = *call->cut;
    cut[1] = *call->example_cut;
    cut[2] = *call->memory_cut;
    for (int k = 0; k < 3; k++) {
        cut[k].nodes = batch->microbatches;
        cut[k].bound = pass->single;
        cut[k].stride = leaf_floats(model, i);
    }
    call->cut = &cut[0];
    call->example_cut = &cut[1];
    call->memory_cut = &cut[2];
    for (int k = 0; k < owner->slot_count; k++) call->gradient[k] = leaves + place_of(model, owner, k);
}

/* Node j of one parameter: the tree over its leaves, written to `sum`; partial sums are stored in place of
   leaves. */
static tr_status form_node(const struct tr_pass *pass, const struct tr_cut *cut, int32_t j, int64_t count,
                           int64_t step, float *sum, float *node)
{
    const int32_t first = cut->bound[j], end = cut->bound[j + 1];
    struct tr_tree_fold fold = {0};
    for (int32_t m = first; m < end; m++) {
        const bool last = m + 1 == end;
        float *places = sum + first * step, *leaf = sum + m * step, *place = places + fold.waiting * step;
        float *to = last && fold.waiting == 0 ? node : place;
        const struct tr_op_scale move = {count, 1, leaf, to};
        if (to != leaf) TR_TRY(tr_device_scale(pass->device, &move));
        tr_tree_push(&fold, last);
        for (int right; (right = tr_tree_combine(&fold)) > 0;) {
            float *left = places + (right - 1) * step;
            const struct tr_op_add add = {count, left, places + right * step,
                                          last && right == 1 ? node : left};
            TR_TRY(tr_device_add(pass->device, &add));
        }
    }
    return TR_OK;
}

tr_status pass_end_share(const struct tr_pass *pass, const struct tr_cut *cut, int i, float *gradients)
{
    const struct tr_model *model = pass->model;
    const int number = pass_owner(model, i);
    const struct tr_layer *owner = &model->layers[number];
    const int64_t step = leaf_floats(model, i);
    for (int k = 0; k < owner->slot_count; k++) {
        const struct tr_parameter *parameter = &model->parameters[owner->slot[k]];
        const int64_t place = place_of(model, owner, k), count = parameter->count;
        float *sum = (float *)pass->layer[number].sum + place, *own = pass->layer[i].own;
        for (int32_t m = 0; own && m < cut->count; m++) {
            const struct tr_op_add add = {count, sum + m * step, own + place + m * step, sum + m * step};
            TR_TRY(tr_device_add(pass->device, &add));
        }
        float *node = gradients + (parameter->offset - pass->arena_begin);
        for (int32_t j = 0; i == number && j < cut->nodes; j++)
            TR_TRY(form_node(pass, cut, j, count, step, sum, node + j * cut->stride));
    }
    return TR_OK;
}
