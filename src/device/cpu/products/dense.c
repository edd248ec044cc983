/* Dense layers, as blocked matrix products. */
#include "device/cpu/products/gradient.h"
#include "device/cpu/products/product.h"

static struct product forward_of(const struct tr_op_dense_forward *a)
{
    return (struct product){.rows = a->rows,
                            .depth = a->in,
                            .columns = a->out,
                            .a = a->x,
                            .b = a->w,
                            .c = a->y,
                            .bias = a->b,
                            .activation = a->activation,
                            .slope = a->slope};
}

static struct product backward_data_of(const struct tr_op_dense_backward_data *a)
{
    return (struct product){.rows = a->rows,
                            .depth = a->out,
                            .columns = a->in,
                            .a = a->dy,
                            .b = a->w,
                            .transposed = true,
                            .c = a->dx};
}

tr_status CPU_KERNEL(dense_forward)(tr_device *device, const struct tr_op_dense_forward *a)
{
    const struct product product = forward_of(a);
    return product_compute(cpu_device_of(device), &product);
}

tr_status CPU_KERNEL(dense_backward_data)(tr_device *device, const struct tr_op_dense_backward_data *a)
{
    const struct product product = backward_data_of(a);
    return product_compute(cpu_device_of(device), &product);
}

tr_status CPU_KERNEL(dense_gelu_forward)(tr_device *device, const struct tr_op_dense_gelu_forward *a)
{
    struct product product = forward_of(&a->dense);
    product.derivative = a->derivative;
    return product_compute(cpu_device_of(device), &product);
}

tr_status CPU_KERNEL(dense_gelu_backward_data)(tr_device *device,
                                               const struct tr_op_dense_gelu_backward_data *a)
{
    struct product product = backward_data_of(&a->dense);
    product.factor = a->derivative;
    return product_compute(cpu_device_of(device), &product);
}

tr_status CPU_KERNEL(dense_backward_weights)(tr_device *device, const struct tr_op_dense_backward_weights *a)
{
    const struct gradient gradient = {.height = a->in,
                                      .width = a->out,
                                      .a = a->x,
                                      .b = a->dy,
                                      .cut = &a->cut,
                                      .repeat = 1,
                                      .to = a->dw,
                                      .bias = a->db};
    return gradient_compute(cpu_device_of(device), &gradient);
}

tr_status CPU_KERNEL(dense_backward_update)(tr_device *device, const struct tr_op_dense_backward_update *a)
{
    const struct tr_op_dense_backward_weights *weights = &a->weights;
    const struct gradient gradient = {.height = weights->in,
                                      .width = weights->out,
                                      .a = weights->x,
                                      .b = weights->dy,
                                      .cut = &weights->cut,
                                      .repeat = 1,
                                      .update = &a->update};
    if (a->update.scalars->held) return TR_OK;
    return gradient_compute(cpu_device_of(device), &gradient);
}
