#include "nn/layers/sequences/heads.h"

#include "base/fail.h"

#include <inttypes.h>
#include <math.h>

tr_status tr_heads_check(int64_t width, int64_t heads, int64_t kv_heads)
{
    if (width % heads)
        return tr_fail(TR_EINVAL,
                       "a width of %" PRId64 " does not divide into %" PRId64 " heads; choose a multiple",
                       width, heads);
    if (heads % kv_heads)
        return tr_fail(TR_EINVAL,
                       "%" PRId64 " heads of queries cannot share %" PRId64
                       " heads of keys and values evenly; make `kv_heads` a divisor of `heads`",
                       heads, kv_heads);
    return TR_OK;
}

tr_status tr_heads_weights(struct tr_layer *layer, struct tr_builder *builder, const tr_config *node,
                           const char *name, int64_t in, int64_t out, int64_t fan_out)
{
    struct tr_initializer weights;
    TR_TRY(tr_initializer_read(node, "glorot_uniform", &weights));
    const struct tr_shape shape = {2, {in, out}, false};
    return tr_builder_parameter(builder, layer, name, TR_PARAMETER_WEIGHT, shape, &weights, in, fan_out);
}

struct tr_attention tr_heads_attention(const struct tr_layer_call *call, int64_t width, int64_t heads,
                                       int64_t kv_heads, float dropout, float *statistics)
{
    const int64_t size = width / heads;
    return (struct tr_attention){
        .examples = call->examples,
        .heads = heads,
        .size = size,
        .kv_heads = kv_heads,
        .scale = 1 / sqrtf((float)size),
        .offset = call->offset,
        .key_offset = call->offset,
        .shift = statistics,
        .inv = statistics + call->rows * heads,
        .rate = call->training ? dropout : 0,
        .key = {call->dropout_key[0], call->dropout_key[1]},
        .layer = call->layer_number,
        .first_example = call->first_example,
        .scalars = call->scalars,
    };
}
