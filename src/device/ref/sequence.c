/* Embeddings and the last row of a sequence. */
#include "device/ref/ref.h"
#include "device/ref/tree.h"

#include <string.h>

tr_status ref_embedding_forward(tr_device *device, const struct tr_op_embedding_forward *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++)
        memcpy(a->y + r * a->width, a->table + a->token[r] * a->width, (size_t)a->width * sizeof *a->y);
    return TR_OK;
}

/* Per token the sum chain over the rows of a microbatch that hold it. */
static void table_leaf(const void *arguments, int32_t microbatch, float *dtable)
{
    const struct tr_op_embedding_backward *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t k = 0; k < a->width; k++) dtable[a->token[r] * a->width + k] += a->dy[r * a->width + k];
}

tr_status ref_embedding_backward(tr_device *device, const struct tr_op_embedding_backward *a)
{
    (void)device;
    return ref_tree(&a->cut, a->vocabulary * a->width, table_leaf, a, a->dtable);
}

tr_status ref_sequence_last_forward(tr_device *device, const struct tr_op_sequence_last_forward *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++) {
        bool empty = a->offset[e] == a->offset[e + 1];
        const float *last = a->x + (a->offset[e + 1] - 1) * a->width;
        for (int64_t k = 0; k < a->width; k++) a->y[e * a->width + k] = empty ? 0 : last[k];
    }
    return TR_OK;
}

tr_status ref_sequence_last_backward(tr_device *device, const struct tr_op_sequence_last_backward *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            for (int64_t k = 0; k < a->width; k++)
                a->dx[r * a->width + k] = r + 1 == a->offset[e + 1] ? a->dy[e * a->width + k] : 0;
    return TR_OK;
}
