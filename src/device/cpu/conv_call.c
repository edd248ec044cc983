#include "device/cpu/conv_call.h"

struct conv_call cpu_conv_forward(tr_device *device, const struct tr_op_conv_forward *a)
{
    return (struct conv_call){.cpu = cpu_device_of(device),
                              .window = &a->window,
                              .rows = a->rows,
                              .source_h = a->window.in_h,
                              .source_w = a->window.in_w,
                              .source_c = a->in_c,
                              .target_h = a->window.out_h,
                              .target_w = a->window.out_w,
                              .target_c = a->out_c,
                              .source = a->x,
                              .target = a->y,
                              .weights = a->w,
                              .bias = a->b,
                              .activation = a->activation,
                              .slope = a->slope};
}

struct conv_call cpu_conv_backward(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    return (struct conv_call){.cpu = cpu_device_of(device),
                              .window = &a->window,
                              .backward = true,
                              .rows = a->rows,
                              .source_h = a->window.out_h,
                              .source_w = a->window.out_w,
                              .source_c = a->out_c,
                              .target_h = a->window.in_h,
                              .target_w = a->window.in_w,
                              .target_c = a->in_c,
                              .source = a->dy,
                              .target = a->dx,
                              .weights = a->w};
}

void cpu_conv_bias(const struct conv_call *call, int64_t columns, float *to)
{
    for (int64_t i = 0; i < columns; i++) to[i] = i < call->target_c ? call->bias[i] : 0.0f;
}
