/* Fusions: neighbouring layers whose device operations a device can do in one pass over memory.
 *
 * A fusion is a run of layers: its head, which can compute what is after it (struct tr_layer_fusing: tails),
 * and perhaps an `add` of the head's output and another layer's, then perhaps an activation; or a max pool;
 * or a gelu, whose gradient the layer after the fusion applies. What is between them no other layer reads,
 * and it is not written. Both ways give the same bits, as the fused operations are defined by their parts
 * (device/ops.h). Where a device lacks them the layers run one by one.
 *
 * A fusion runs forward when its last layer would, and backward when its head would; no other layer runs in
 * between, so contributions to gradients are added in the order in which they always are.
 */
#ifndef TR_NN_FUSION_H
#define TR_NN_FUSION_H

#include "nn/model.h"

struct tr_fusion {
    int head, end; /* the first layer and the last one; the same number: a layer that runs alone */
    int sum;       /* the layer that adds, or -1 */
    int addend;    /* which of its inputs is not the head's output */
};

/* The fusion that begins with layer `head` and is within the layers [head, limit), on a device (NULL: on one
   that has all operations). The next one begins after its end. */
struct tr_fusion tr_fusion_at(const struct tr_model *model, const struct tr_device_class *device, int head,
                              int limit);

/* The tail of a fusion by the last layer's options; the rest of it is NULL. */
struct tr_layer_tail tr_fusion_tail(const struct tr_model *model, const struct tr_fusion *fusion);

static inline bool tr_fusion_joins(const struct tr_fusion *fusion)
{
    return fusion->head < fusion->end;
}

#endif
