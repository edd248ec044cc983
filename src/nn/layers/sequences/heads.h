/* The common parts of layers with heads of attention: which sizes go together, the weights of projections,
 * and the arguments of the operation that do not depend on where queries, keys and values lie.
 */
#ifndef TR_NN_LAYERS_HEADS_H
#define TR_NN_LAYERS_HEADS_H

#include "nn/layer.h"

/* TR_EINVAL unless the width is divisible by the heads of queries, and their number by that of heads of
   keys and values. */
tr_status tr_heads_check(int64_t width, int64_t heads, int64_t kv_heads);

/* Declares the weights [in][out] of a projection, with the initializer of `node`. `fan_out` is what that
   counts: that of one of the matrices which lie side by side. */
tr_status tr_heads_weights(struct tr_layer *layer, struct tr_builder *builder, const tr_config *node,
                           const char *name, int64_t in, int64_t out, int64_t fan_out);

/* Attention of a call's rows to themselves, without q, k, v and their steps. `width` is that of all heads of
   queries, `dropout` the rate in training; `statistics` has room for [2][rows][heads]. */
struct tr_attention tr_heads_attention(const struct tr_layer_call *call, int64_t width, int64_t heads,
                                       int64_t kv_heads, float dropout, float *statistics);

#endif
