/* Convolutions and their gradients: products with tables of places, see conv_plan.h. */
#include "device/gpu/conv_plan.h"
#include "device/gpu/internal.h"
#include "device/gpu/operations/operations.h"
#include "device/gpu/product.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

/* A plan on the device, kept for its life: there are as many as different convolutions in its networks. */
struct gpu_kept_plan {
    struct gpu_conv_shape shape;
    int32_t sets;
    int64_t most;
    int32_t *host; /* until the copy is done */
    void *table;   /* pointer of the device */
};

static tr_status keep(struct gpu *gpu, const struct gpu_conv_shape *shape, struct gpu_kept_plan *out)
{
    struct gpu_conv_plan plan;
    tr_status status = gpu_conv_plan_make(shape, &plan);
    *out = (struct gpu_kept_plan){.shape = *shape, .sets = plan.sets, .most = plan.most, .host = plan.table};
    if (status == TR_OK) status = gpu_alloc(&gpu->base, plan.bytes, &out->table);
    if (status == TR_OK) status = gpu_to_device(&gpu->base, out->table, out->host, plan.bytes);
    if (status == TR_OK) return status;
    tr_device_free(&gpu->base, out->table);
    tr_free(out->host);
    return status;
}

static tr_status find_plan(tr_device *device, const struct gpu_conv_shape *shape,
                           const struct gpu_kept_plan **out)
{
    struct gpu *gpu = gpu_of(device);
    for (int i = 0; i < gpu->plan_count; i++) {
        *out = &gpu->plans[i];
        if (memcmp(&gpu->plans[i].shape, shape, sizeof *shape) == 0) return TR_OK;
    }
    if (!tr_grow(&gpu->plans, gpu->plan_count, sizeof *gpu->plans)) return TR_ENOMEM;
    TR_TRY(keep(gpu, shape, &gpu->plans[gpu->plan_count]));
    *out = &gpu->plans[gpu->plan_count++];
    return TR_OK;
}

void gpu_plans_release(struct gpu *gpu)
{
    for (int i = 0; i < gpu->plan_count; i++) {
        tr_device_free(&gpu->base, gpu->plans[i].table);
        tr_free(gpu->plans[i].host);
    }
    tr_free(gpu->plans);
}

static int64_t image_in(const struct tr_sliding_window *w, int32_t channels)
{
    return (int64_t)w->in_h * w->in_w * channels;
}

static int64_t image_out(const struct tr_sliding_window *w, int32_t channels)
{
    return (int64_t)w->out_h * w->out_w * channels;
}

/* Structures that are compared as bytes must begin as zeros. */
static struct gpu_conv_shape shape_of(enum gpu_conv kind, int32_t in_c, int32_t out_c,
                                      const struct tr_sliding_window *window)
{
    struct gpu_conv_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.kind = kind;
    shape.in_c = in_c;
    shape.out_c = out_c;
    shape.window = *window;
    return shape;
}

tr_status gpu_conv_forward(tr_device *device, const struct tr_op_conv_forward *a)
{
    const struct gpu_kept_plan *plan;
    struct gpu_conv_shape shape = shape_of(GPU_CONV_FORWARD, a->in_c, a->out_c, &a->window);
    TR_TRY(find_plan(device, &shape, &plan));
    struct gpu_product product = {
        .addressing = GPU_PIXELS,
        .a_k = true,
        .m = plan->most * a->rows,
        .sets = plan->sets,
        .n = a->out_c,
        .leaves = 1,
        .batches = 1,
        .a = a->x,
        .b = a->w,
        .bias = a->b,
        .activation = a->activation,
        .slope = a->slope,
        .c = a->y,
        .b_n = 1,
        .images = a->rows,
        .a_image = image_in(&a->window, a->in_c),
        .c_image = image_out(&a->window, a->out_c),
        .table = plan->table,
    };
    return gpu_product_run(device, &product);
}

tr_status gpu_conv_backward_data(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    const struct gpu_kept_plan *plan;
    struct gpu_conv_shape shape = shape_of(GPU_CONV_DATA, a->in_c, a->out_c, &a->window);
    TR_TRY(find_plan(device, &shape, &plan));
    struct gpu_product product = {
        .addressing = GPU_PIXELS,
        .a_k = true,
        .b_k = true,
        .m = plan->most * a->rows,
        .sets = plan->sets,
        .n = a->in_c,
        .leaves = 1,
        .batches = 1,
        .a = a->dy,
        .b = a->w,
        .c = a->dx,
        .b_n = a->out_c,
        .images = a->rows,
        .a_image = image_out(&a->window, a->out_c),
        .c_image = image_in(&a->window, a->in_c),
        .table = plan->table,
    };
    return gpu_product_run(device, &product);
}

tr_status gpu_conv_backward_weights(tr_device *device, const struct tr_op_conv_backward_weights *a)
{
    const struct gpu_kept_plan *plan;
    struct gpu_cut cut;
    void *scratch = NULL;
    int64_t size = (int64_t)a->window.kernel_h * a->window.kernel_w * a->in_c * a->out_c, stride;
    if (a->cut.nodes == 0) return TR_OK;
    struct gpu_conv_shape shape = shape_of(GPU_CONV_WEIGHTS, a->in_c, a->out_c, &a->window);
    TR_TRY(find_plan(device, &shape, &plan));
    if (a->cut.nodes != a->cut.count)
        TR_TRY(gpu_scratch(device, (size_t)(size * a->cut.count) * sizeof(float), &scratch));
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    float *leaves = gpu_leaves(&a->cut, size, a->dw, scratch, &stride);
    struct gpu_product product = {
        .addressing = GPU_TAPS,
        .m = plan->most,
        .sets = plan->sets,
        .n = a->out_c,
        .leaves = a->cut.count,
        .batches = 1,
        .row = cut.row,
        .a = a->x,
        .b = a->dy,
        .c = leaves,
        .c_leaf = stride,
        .a_image = image_in(&a->window, a->in_c),
        .b_image = image_out(&a->window, a->out_c),
        .table = plan->table,
    };
    TR_TRY(gpu_product_run(device, &product));
    TR_TRY(gpu_tree(device, &a->cut, size, a->dw, leaves));
    if (!a->db) return TR_OK;
    int64_t pixels = (int64_t)a->window.out_h * a->window.out_w;
    return gpu_sum_columns(device, &a->cut, pixels, a->out_c, a->dy, a->db, scratch);
}
