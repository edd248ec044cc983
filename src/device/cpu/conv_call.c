#include "device/cpu/conv_call.h"

#include "device/cpu/sizes.h"

#include <math.h>

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

int cpu_conv_line_parts(int threads, int64_t lines, int64_t image_lines, int64_t again, int64_t panels,
                        double packing)
{
    int best = threads;
    double least = INFINITY;
    for (int parts = threads; parts >= 1; parts--) {
        if (threads % parts) continue;
        int64_t most = 0, begin, end;
        for (int run = 0; run < parts; run++) {
            tr_team_chunk(lines, 1, run, parts, &begin, &end);
            most = larger(most, end - begin + smaller(again, begin % image_lines));
        }
        const double slowest = (double)most * ((double)divide_up(panels, threads / parts) + packing);
        if (slowest >= least) continue;
        least = slowest;
        best = parts;
    }
    return best;
}

void cpu_conv_bias(const struct conv_call *call, int64_t columns, float *to)
{
    for (int64_t i = 0; i < columns; i++) to[i] = i < call->target_c ? call->bias[i] : 0.0f;
}
