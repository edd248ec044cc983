/* Embeddings; one row of an example from its rows (the last, their mean, the maximum of each column); and
 * rows made of neighbours.
 */
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/tree.h"

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

/* The rows of an example. */
static void rows_of(const int32_t *offset, int64_t spatial, int64_t example, int64_t *begin, int64_t *end)
{
    *begin = offset ? offset[example] : example * spatial;
    *end = offset ? offset[example + 1] : (example + 1) * spatial;
}

tr_status ref_pool_rows_forward(tr_device *device, const struct tr_op_pool_rows_forward *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++) {
        int64_t begin, end;
        rows_of(a->offset, a->spatial, e, &begin, &end);
        float share = 1 / (float)(end - begin);
        for (int64_t k = 0; k < a->width; k++) {
            float sum = 0, kept = 0;
            int64_t taken = 0;
            for (int64_t r = begin; r < end; r++) {
                float x = a->x[r * a->width + k];
                sum += x;
                if (r > begin && !ref_replaces(x, kept)) continue;
                kept = x;
                taken = r - begin;
            }
            a->y[e * a->width + k] = a->kind == TR_POOL_MAX ? kept : begin < end ? sum * share : 0;
            if (a->taken) a->taken[e * a->width + k] = (int32_t)taken;
        }
    }
    return TR_OK;
}

tr_status ref_pool_rows_backward(tr_device *device, const struct tr_op_pool_rows_backward *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++) {
        int64_t begin, end;
        rows_of(a->offset, a->spatial, e, &begin, &end);
        float share = 1 / (float)(end - begin);
        for (int64_t r = begin; r < end; r++)
            for (int64_t k = 0; k < a->width; k++) {
                float dy = a->dy[e * a->width + k];
                bool taken = a->kind == TR_POOL_MAX && a->taken[e * a->width + k] == r - begin;
                a->dx[r * a->width + k] = a->kind == TR_POOL_MAX ? (taken ? dy : 0) : dy * share;
            }
    }
    return TR_OK;
}

tr_status ref_sequence_unfold(tr_device *device, const struct tr_op_sequence_unfold *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            for (int64_t tap = 0; tap < a->taps; tap++) {
                int64_t from = r + tap * a->dilation - a->before;
                bool outside = from < a->offset[e] || from >= a->offset[e + 1];
                for (int64_t k = 0; k < a->width; k++)
                    a->y[(r * a->taps + tap) * a->width + k] = outside ? 0 : a->x[from * a->width + k];
            }
    return TR_OK;
}

tr_status ref_sequence_fold(tr_device *device, const struct tr_op_sequence_fold *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            float *dx = a->dx + r * a->width;
            for (int64_t k = 0; k < a->width; k++) dx[k] = 0;
            for (int64_t tap = 0; tap < a->taps; tap++) {
                int64_t from = r - tap * a->dilation + a->before;
                if (from < a->offset[e] || from >= a->offset[e + 1]) continue;
                for (int64_t k = 0; k < a->width; k++) dx[k] += a->dy[(from * a->taps + tap) * a->width + k];
            }
        }
    return TR_OK;
}

tr_status ref_sequence_copy(tr_device *device, const struct tr_op_sequence_copy *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            int64_t from = a->reverse ? a->offset[e] + a->offset[e + 1] - 1 - r : r;
            memcpy(a->y + r * a->y_step, a->x + from * a->x_step, (size_t)a->width * sizeof *a->y);
        }
    return TR_OK;
}
