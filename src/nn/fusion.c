#include "nn/fusion.h"

/* Which input of layer `i` is the output of layer i - 1, if no other layer takes that; else -1. */
static int follows(const struct tr_model *model, int i)
{
    const struct tr_layer *layer = &model->layers[i];
    int found = -1;
    if (layer->alias || model->layers[i - 1].alias || tr_model_consumers(model, i - 1) != 1) return -1;
    for (int k = 0; k < layer->input_count; k++)
        if (tr_model_source(model, layer->input[k]) == i - 1) found = k;
    return found;
}

/* Whether the only layer that takes the output of layer `i`, a gelu, is within the range and applies its
   gradient. */
static bool gelu_is_undone(const struct tr_model *model, int i, int limit)
{
    if (tr_model_consumers(model, i) != 1) return false;
    for (int k = i + 1; k < limit; k++) {
        const struct tr_layer *layer = &model->layers[k];
        if (!layer->alias && layer->input_count == 1 && tr_model_source(model, layer->input[0]) == i)
            return layer->class->fusing.applies_gelu_gradient && layer->adapters.count == 0;
    }
    return false;
}

struct tr_fusion tr_fusion_at(const struct tr_model *model, const struct tr_device_class *device, int head,
                              int limit)
{
    struct tr_fusion fusion = {head, head, -1, 0};
    const struct tr_layer *first = &model->layers[head];
    if (first->class->fusing.tails == 0 || !first->class->fusing.fuses(first, device)) return fusion;
    for (int i = head + 1; i < limit; i++) {
        const struct tr_layer *layer = &model->layers[i];
        const int input = follows(model, i);
        struct tr_layer_tail tail;
        if (input < 0 || !layer->class->fusing.tail) break;
        const enum tr_tail_kind kind = layer->class->fusing.tail(layer, &tail);
        if (!(first->class->fusing.tails & kind) || (kind == TR_TAIL_SUM && fusion.sum >= 0)) break;
        if (kind == TR_TAIL_GELU && !gelu_is_undone(model, i, limit)) break;
        fusion.end = i;
        if (kind != TR_TAIL_SUM) break;
        fusion.sum = i;
        fusion.addend = 1 - input;
    }
    return fusion;
}

struct tr_layer_tail tr_fusion_tail(const struct tr_model *model, const struct tr_fusion *fusion)
{
    const struct tr_layer *end = &model->layers[fusion->end];
    struct tr_layer_tail tail = {.activation = TR_ACT_NONE};
    end->class->fusing.tail(end, &tail);
    tail.relu = end->relu.of_input;
    return tail;
}
