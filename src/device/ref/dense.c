/* Dense layers: y = act(x w + b) and its gradients. */
#include "device/ref/loops/chain.h"
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/tree.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

tr_status ref_dense_forward(tr_device *device, const struct tr_op_dense_forward *a)
{
    (void)device;
    assert(!tr_activation_reads_input(a->activation));
    for (int64_t r = 0; r < a->rows; r++) {
        float *y = a->y + r * a->out;
        memset(y, 0, (size_t)a->out * sizeof *y);
        ref_chain_rows(a->in, a->out, a->x + r * a->in, a->w, y);
        ref_finish_row(a->out, a->b, a->activation, a->slope, y);
    }
    return TR_OK;
}

tr_status ref_dense_backward_data(tr_device *device, const struct tr_op_dense_backward_data *a)
{
    (void)device;
    float *transposed = ref_transposed(1, a->in, a->out, a->w);
    if (!transposed) return TR_ENOMEM;
    memset(a->dx, 0, (size_t)(a->rows * a->in) * sizeof *a->dx);
    for (int64_t r = 0; r < a->rows; r++)
        ref_chain_rows(a->out, a->in, a->dy + r * a->out, transposed, a->dx + r * a->in);
    tr_free(transposed);
    return TR_OK;
}

tr_status ref_dense_gelu_forward(tr_device *device, const struct tr_op_dense_gelu_forward *a)
{
    struct tr_op_dense_forward dense = a->dense;
    const int64_t count = dense.rows * dense.out;
    const struct tr_op_activation_forward forward = {count, dense.y, dense.y, dense.activation, 0};
    const struct tr_op_fill fill = {count, 1, a->derivative};
    const struct tr_op_activation_backward backward = {count,         dense.y,          NULL, a->derivative,
                                                       a->derivative, dense.activation, 0};
    dense.activation = TR_ACT_NONE;
    TR_TRY(ref_dense_forward(device, &dense));
    TR_TRY(ref_fill(device, &fill));
    TR_TRY(ref_activation_backward(device, &backward));
    return ref_activation_forward(device, &forward);
}

tr_status ref_dense_gelu_backward_data(tr_device *device, const struct tr_op_dense_gelu_backward_data *a)
{
    const int64_t count = a->dense.rows * a->dense.in;
    TR_TRY(ref_dense_backward_data(device, &a->dense));
    for (int64_t i = 0; i < count; i++) a->dense.dx[i] *= a->derivative[i];
    return TR_OK;
}

/* The chain over the rows of a microbatch of x[r][i] * dy[r][o]. */
static void weights_leaf(const void *arguments, int32_t microbatch, float *dw)
{
    const struct tr_op_dense_backward_weights *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        ref_chain_outer(a->in, a->out, a->x + r * a->in, a->dy + r * a->out, dw);
}

/* The sum chain over the rows of a microbatch of dy[r][o]. */
static void bias_leaf(const void *arguments, int32_t microbatch, float *db)
{
    const struct tr_op_dense_backward_weights *a = arguments;
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t o = 0; o < a->out; o++) db[o] += a->dy[r * a->out + o];
}

tr_status ref_dense_backward_weights(tr_device *device, const struct tr_op_dense_backward_weights *a)
{
    (void)device;
    tr_status status = ref_tree(&a->cut, a->in * a->out, weights_leaf, a, a->dw);
    if (status == TR_OK && a->db) status = ref_tree(&a->cut, a->out, bias_leaf, a, a->db);
    return status;
}

tr_status ref_dense_backward_update(tr_device *device, const struct tr_op_dense_backward_update *a)
{
    struct tr_op_dense_backward_weights weights = a->weights;
    struct tr_op_update update = a->update;
    float *dw = tr_alloc((size_t)(weights.in * weights.out), sizeof *dw);
    if (!dw) return TR_ENOMEM;
    weights.dw = dw;
    update.grad = dw;
    tr_status status = ref_dense_backward_weights(device, &weights);
    if (status == TR_OK) status = ref_update(device, &update);
    tr_free(dw);
    return status;
}
