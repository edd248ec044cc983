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

struct conv_grid cpu_conv_grid(int threads, int64_t lines, int64_t image_lines, int64_t again, int64_t panels,
                               double packing)
{
    struct conv_grid best = {1};
    double least = INFINITY;
    for (int parts = 1; parts <= threads; parts++) {
        if (threads % parts) continue;
        const struct conv_grid grid = {parts};
        double slowest = 0.0;
        for (int member = 0; member < threads; member++) {
            const struct conv_part part = cpu_conv_part(&grid, lines, panels, member, threads);
            const double own = (double)(part.line_end - part.line + smaller(again, part.line % image_lines));
            slowest = fmax(slowest, own * ((double)(part.panel_end - part.panel) + packing));
        }
        if (slowest >= least) continue;
        least = slowest;
        best = grid;
    }
    return best;
}

struct conv_part cpu_conv_part(const struct conv_grid *grid, int64_t lines, int64_t panels, int member,
                               int size)
{
    const int parts = size == 1 ? 1 : grid->panel_parts;
    struct conv_part part;
    tr_team_chunk(lines, 1, member / parts, size / parts, &part.line, &part.line_end);
    tr_team_chunk(panels, 1, member % parts, parts, &part.panel, &part.panel_end);
    return part;
}

void cpu_conv_bias(const struct conv_call *call, int64_t columns, float *to)
{
    for (int64_t i = 0; i < columns; i++) to[i] = i < call->target_c ? call->bias[i] : 0.0f;
}
