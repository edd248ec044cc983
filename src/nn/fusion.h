/* Fusions: neighbouring layers whose device operations a device can do in one pass over memory.
 *
 * A fusion is a run of layers: a head, and a tail that the head can compute (struct tr_layer_fusing:
 * tails). The tail is an `add` of the head's output and another layer's, an activation, or both; or a max
 * pool; or a gelu, whose gradient the layer after the fusion applies. No other layer reads the tensors
 * between them, and they are not stored. Fused or not, the bits are the same, as the fused operations are
 * defined by their parts (device/ops.h). Where a device lacks them, the layers run one by one.
 *
 * A fusion runs forward when its last layer would, and backward when its head would; no other layer runs
 * in between, so the order in which contributions to gradients are added does not change.
 */
#ifndef TR_NN_FUSION_H
#define TR_NN_FUSION_H

#include "nn/model.h"

struct tr_fusion {
    int head, end; /* the first and the last layer; equal for a layer that runs alone */
    int sum;       /* the layer that adds, or -1 */
    int addend;    /* its input that is not the head's output */
};

/* The fusion that begins with layer `head` and lies within the layers [head, limit), on a device (NULL: on
   one that has all operations). The next one begins after its end. */
struct tr_fusion tr_fusion_at(const struct tr_model *model, const struct tr_device_class *device, int head,
                              int limit);

/* The tail of a fusion according to the last layer's options; other members are NULL. */
struct tr_layer_tail tr_fusion_tail(const struct tr_model *model, const struct tr_fusion *fusion);

static inline bool tr_fusion_joins(const struct tr_fusion *fusion)
{
    return fusion->head < fusion->end;
}

#endif
