#include "device/ref/loops/recurrent.h"

#include "device/ref/loops/chain.h"
#include "device/ref/loops/tree.h"

static void leaf(const void *arguments, int32_t microbatch, float *dw)
{
    const struct ref_recurrent_weights *a = arguments;
    const int64_t hidden = a->hidden, columns = a->gates * hidden;
    for (int64_t e = a->cut->row[microbatch]; e < a->cut->row[microbatch + 1]; e++)
        for (int64_t r = a->offset[e] + 1; r < a->offset[e + 1]; r++)
            ref_chain_outer(hidden, columns, a->h + (r - 1) * hidden, a->dgates + r * columns, dw);
}

tr_status ref_recurrent_weights(const struct ref_recurrent_weights *weights)
{
    return ref_tree(weights->cut, weights->gates * weights->hidden * weights->hidden, leaf, weights,
                    weights->dw);
}
