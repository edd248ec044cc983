/* Convolutions by groups of channels: lays out the memory of a call and divides it among the members. */
#include "device/cpu/grouped/grouped.h"

#include "base/fail.h"
#include "device/cpu/products/gradient.h"
#include "device/cpu/vectors/math.h"

/* A multiply-add of a vector on one thread, where loads limit it half of the time. */
#define NANOSECONDS (0.25 / VW)

/* Applies the activations that take many registers, after the outputs were written. */
static void activate_line(const struct conv_call *call, float *line)
{
    const int64_t count = (int64_t)call->target_w * call->target_c;
    for (int64_t i = 0; i < count; i += VW) {
        const int64_t n = smaller(VW, count - i);
        const vf y = v_load_part(line + i, n);
        v_store_part(line + i, call->activation == TR_ACT_TANH ? v_tanh(y) : v_sigmoid(y), n);
    }
}

static void lines(void *arguments, int member, int size)
{
    const struct grouped *g = arguments;
    const struct conv_call *call = &g->call;
    int64_t begin, end;
    tr_team_chunk(call->rows * call->target_h, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = i / call->target_h;
        const int32_t h = (int32_t)(i % call->target_h);
        if (g->tap0)
            depthwise_line(g, r, h);
        else
            groups_line(g, r, h);
        if (call->activation == TR_ACT_TANH || call->activation == TR_ACT_SIGMOID)
            activate_line(call, call->target + i * call->target_w * call->target_c);
    }
}

static void pack(void *arguments, int member, int size)
{
    const struct grouped *g = arguments;
    int64_t begin, end;
    tr_team_chunk(g->groups, 1, member, size, &begin, &end);
    groups_pack(g, begin, end);
}

/* The targets of a line that meet a whole kernel row: one run from the first tap to the last. */
static bool is_full(const struct grouped *g, int32_t t)
{
    const int32_t first = g->w.start[t];
    return g->w.start[t + 1] == first + 1 && g->w.runs[first].length == g->call.window->kernel_w;
}

static void find_full(struct grouped *g)
{
    int32_t t = 0;
    while (t < g->w.targets && !is_full(g, t)) t++;
    g->full_begin = t;
    while (t < g->w.targets && is_full(g, t)) t++;
    g->full_end = t;
    g->step = g->call.backward ? 1 : g->call.window->stride_w;
}

/* Whether depthwise_line has an unrolled copy. */
static void find_copy(struct grouped *g)
{
    const struct tr_sliding_window *w = g->call.window;
    const int32_t stride = w->stride_w, kernel = w->kernel_w;
    if (!V_SHAPES || g->call.target_c < VW || w->dilation_w != 1 || stride > 2 || w->pad_left >= kernel)
        return;
    if (kernel != 3 && kernel != 5 && (kernel != 7 || stride > 1)) return;
    g->unrolled = true;
    g->up = g->call.backward ? stride : 1;
    g->lead = g->call.backward ? kernel - 1 - w->pad_left : w->pad_left;
}

static tr_status run(struct grouped *g)
{
    const struct conv_call *call = &g->call;
    const struct tr_sliding_window *window = call->window;
    const int64_t taps = (int64_t)window->kernel_h * window->kernel_w;
    if (call->rows == 0) return TR_OK;
    const struct conv_extent h = {window->in_h,     window->out_h,      window->kernel_h,
                                  window->stride_h, window->dilation_h, window->pad_top};
    const struct conv_extent w = {window->in_w,     window->out_w,      window->kernel_w,
                                  window->stride_w, window->dilation_w, window->pad_left};
    const size_t h_bytes = cpu_round(cpu_conv_axis_bytes(call->target_h, window->kernel_h));
    const size_t w_bytes = cpu_round(cpu_conv_axis_bytes(call->target_w, window->kernel_w));
    const bool depthwise = g->source_each == 1 && g->target_each == 1;
    g->padded = divide_up(g->target_each, VW) * VW;
    const size_t packed =
        depthwise ? 0 : (size_t)(g->groups * taps * g->source_each * g->padded) * sizeof(float);
    TR_TRY(cpu_reserve(call->cpu, 0, h_bytes + w_bytes + packed));
    char *shared = cpu_shared(call->cpu);
    cpu_conv_axis_build(&g->h, &h, call->backward, false, shared);
    cpu_conv_axis_build(&g->w, &w, call->backward, true, shared + h_bytes);
    find_full(g);
    if (depthwise) find_copy(g);
    const double products =
        (double)call->rows * call->target_h * call->target_w * call->target_c * (double)taps * g->source_each;
    if (depthwise) {
        g->tap0 = call->weights + (call->backward ? (taps - 1) * call->target_c : 0);
        g->tap_step = call->backward ? -call->target_c : call->target_c;
    } else {
        g->packed = (float *)(shared + h_bytes + w_bytes);
        cpu_run(call->cpu, (double)packed / sizeof(float), pack, g);
    }
    cpu_run(call->cpu, products * NANOSECONDS, lines, g);
    return TR_OK;
}

tr_status CPU_KERNEL(grouped_conv_forward)(tr_device *device, const struct tr_op_grouped_conv_forward *a)
{
    struct grouped g = {.call = cpu_conv_forward(device, &a->conv),
                        .groups = a->groups,
                        .source_each = a->conv.in_c / a->groups,
                        .target_each = a->conv.out_c / a->groups};
    return run(&g);
}

tr_status CPU_KERNEL(grouped_conv_backward_data)(tr_device *device,
                                                 const struct tr_op_grouped_conv_backward_data *a)
{
    struct grouped g = {.call = cpu_conv_backward(device, &a->conv),
                        .groups = a->groups,
                        .source_each = a->conv.out_c / a->groups,
                        .target_each = a->conv.in_c / a->groups};
    return run(&g);
}

/* ---- the weight gradient ---- */

struct gradient_call {
    struct grouped_gradient gradient;
    const struct cpu_device *cpu;
};

static void units(void *arguments, int member, int size)
{
    const struct gradient_call *c = arguments;
    const struct grouped_gradient *g = &c->gradient;
    float *sums = cpu_scratch(c->cpu, member);
    int64_t begin, end;
    tr_team_chunk(g->units, 1, member, size, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        if (g->depthwise)
            depthwise_gradient(g, unit, sums);
        else
            groups_gradient(g, unit, sums);
    }
    if (!g->op->db) return;
    const int64_t pixels = (int64_t)g->op->window.out_h * g->op->window.out_w;
    tr_team_chunk(g->op->out_c, 16, member, size, &begin, &end);
    sum_columns(&g->op->cut, pixels, g->op->dy, g->op->out_c, begin, end, g->op->db);
}

static void plan_units(struct grouped_gradient *g, int members)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t taps = (int64_t)w->kernel_h * w->kernel_w;
    if (!g->depthwise) {
        g->units =
            g->groups * taps * divide_up(g->in_each, GROUPS_INPUTS) * divide_up(g->out_each, GROUPS_OUTPUTS);
        g->unit_floats = GROUPS_INPUTS * GROUPS_OUTPUTS;
        return;
    }
    g->whole_rows = V_SHAPES && g->groups >= VW && w->dilation_w == 1 && w->stride_w <= 2 &&
                    (w->kernel_w == 3 || w->kernel_w == 5 || (w->kernel_w == 7 && w->stride_w == 1));
    const int64_t vectors = divide_up(g->groups, VW);
    g->block = DEPTHWISE_BLOCK;
    if (g->whole_rows) g->block = smaller(divide_up(vectors, members) * VW, DEPTHWISE_MOST);
    const int64_t blocks = divide_up(g->groups, g->block);
    g->by_row = g->whole_rows && vectors < members;
    g->units = blocks * (!g->whole_rows ? taps : g->by_row ? w->kernel_h : 1);
    g->unit_floats = g->block * (!g->whole_rows ? 1 : g->by_row ? w->kernel_w : taps);
}

tr_status CPU_KERNEL(grouped_conv_backward_weights)(tr_device *device,
                                                    const struct tr_op_grouped_conv_backward_weights *a)
{
    struct cpu_device *cpu = cpu_device_of(device);
    const struct tr_op_conv_backward_weights *op = &a->conv;
    struct gradient_call c = {.gradient = {.op = op,
                                           .groups = a->groups,
                                           .in_each = op->in_c / a->groups,
                                           .out_each = op->out_c / a->groups},
                              .cpu = cpu};
    struct grouped_gradient *g = &c.gradient;
    int32_t most = 1;
    if (op->cut.count == 0 && op->cut.nodes == 0) return TR_OK;
    for (int32_t j = 0; j < op->cut.nodes; j++)
        most = (int32_t)larger(most, op->cut.bound[j + 1] - op->cut.bound[j]);
    g->depthwise = g->in_each == 1 && g->out_each == 1;
    g->levels = tr_tree_levels(most);
    plan_units(g, cpu->base.threads);
    TR_TRY(cpu_reserve(cpu, (size_t)(g->levels * g->unit_floats) * sizeof(float), 0));
    const int64_t rows = op->cut.count > 0 ? op->cut.row[op->cut.count] : 0;
    const double pixels = (double)rows * op->window.out_h * op->window.out_w;
    const double taps = (double)op->window.kernel_h * op->window.kernel_w;
    cpu_run(cpu, pixels * op->out_c * taps * g->in_each * NANOSECONDS, units, &c);
    return TR_OK;
}
