/* Dense layers, and sums of rows. */
#include "device/gpu/operations/operations.h"
#include "device/gpu/product.h"

#include "base/fail.h"

tr_status gpu_dense_forward(tr_device *device, const struct tr_op_dense_forward *a)
{
    struct gpu_product product = {
        .addressing = GPU_STRIDES,
        .a_k = true,
        .m = a->rows,
        .sets = 1,
        .n = a->out,
        .k = a->in,
        .leaves = 1,
        .batches = 1,
        .a = a->x,
        .b = a->w,
        .bias = a->b,
        .activation = a->activation,
        .slope = a->slope,
        .c = a->y,
        .a_m = a->in,
        .a_k_step = 1,
        .b_k_step = a->out,
        .b_n = 1,
        .c_m = a->out,
    };
    return gpu_product_run(device, &product);
}

tr_status gpu_dense_backward_data(tr_device *device, const struct tr_op_dense_backward_data *a)
{
    struct gpu_product product = {
        .addressing = GPU_STRIDES,
        .a_k = true,
        .b_k = true,
        .m = a->rows,
        .sets = 1,
        .n = a->in,
        .k = a->out,
        .leaves = 1,
        .batches = 1,
        .a = a->dy,
        .b = a->w,
        .c = a->dx,
        .a_m = a->out,
        .a_k_step = 1,
        .b_k_step = 1,
        .b_n = a->out,
        .c_m = a->in,
    };
    return gpu_product_run(device, &product);
}

tr_status gpu_dense_backward_weights(tr_device *device, const struct tr_op_dense_backward_weights *a)
{
    struct gpu_cut cut;
    void *scratch = NULL;
    int64_t size = a->in * a->out, stride;
    if (a->cut.nodes == 0) return TR_OK;
    if (a->cut.nodes != a->cut.count)
        TR_TRY(gpu_scratch(device, (size_t)((size > a->out ? size : a->out) * a->cut.count) * sizeof(float),
                           &scratch));
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    if (a->in > 0) {
        float *leaves = gpu_leaves(&a->cut, size, a->dw, scratch, &stride);
        struct gpu_product product = {
            .addressing = GPU_STRIDES,
            .m = a->in,
            .sets = 1,
            .n = a->out,
            .leaves = a->cut.count,
            .batches = 1,
            .row = cut.row,
            .a = a->x,
            .b = a->dy,
            .c = leaves,
            .c_leaf = stride,
            .a_m = 1,
            .a_k_step = a->in,
            .b_k_step = a->out,
            .b_n = 1,
            .c_m = a->out,
        };
        TR_TRY(gpu_product_run(device, &product));
        TR_TRY(gpu_tree(device, &a->cut, size, a->dw, leaves));
    }
    return a->db ? gpu_sum_columns(device, &a->cut, 1, a->out, a->dy, a->db, scratch) : TR_OK;
}

tr_status gpu_sum_rows(tr_device *device, const struct tr_op_sum_rows *a)
{
    void *scratch = NULL;
    if (a->cut.nodes != a->cut.count)
        TR_TRY(gpu_scratch(device, (size_t)a->cut.count * sizeof(float), &scratch));
    return gpu_sum_columns(device, &a->cut, 1, 1, a->x, a->y, scratch);
}
