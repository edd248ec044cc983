/* Gradients of pools. Each input pixel gathers from the windows over it, so that dx is written once and in
 * order; windows that do not overlap write their gradient directly, which reads it once.
 */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/convolutions/pool.h"
#include "device/cpu/vectors/vec.h"

#include <string.h>

#define NANOSECONDS_PER_TAP (1.0 / VW)

/* A window over an input position, along one axis. */
struct over {
    int32_t out;  /* position of the window */
    int32_t tap;  /* its tap that falls on the position, */
    int32_t taps; /* of so many inside the image */
};

/* The windows over one position, ascending: at most one for each tap. */
struct overs {
    int32_t count;
    struct over *over;
};

/* Lists the windows over input position `in`; returns their number. */
static int32_t list_windows(int32_t in, int32_t stride, int32_t pad, int32_t dilation, int32_t kernel,
                            int32_t inputs, int32_t outputs, struct over *list)
{
    struct pool_range windows = pool_windows(in, stride, pad, dilation, kernel, outputs);
    int32_t count = 0;
    for (int32_t out = windows.begin; out < windows.end; out++) {
        int32_t distance = in + pad - out * stride;
        if (distance % dilation != 0) continue;
        struct pool_range taps = pool_taps(out, stride, pad, dilation, kernel, inputs);
        list[count++] = (struct over){out, distance / dilation, taps.end - taps.begin};
    }
    return count;
}

/* The gradient that the window at (down, across) passes to n <= VW channels of a pixel; `at` is where its
   own gradient lies. */
V_INLINE vf passed(const struct tr_op_pool_backward *a, struct over down, struct over across, int64_t at,
                   int64_t n, bool whole)
{
    vf dy = whole ? v_load(a->dy + at) : v_load_part(a->dy + at, n);
    if (a->kind == TR_POOL_AVERAGE) {
        const int32_t inside = down.taps * across.taps, all = a->window.kernel_h * a->window.kernel_w;
        return v_mul(dy, v_set1(1 / (float)(a->count_border ? all : inside)));
    }
    if (a->relu_output) {
        vf y = whole ? v_load(a->relu_output + at) : v_load_part(a->relu_output + at, n);
        dy = v_select(v_gt(y, v_zero()), dy, v_zero());
    }
    vi taken = whole ? vi_load_bytes(a->taken + at) : vi_load_bytes_part(a->taken + at, n);
    return v_select(vi_eq(taken, vi_set1(down.tap * a->window.kernel_w + across.tap)), dy, v_zero());
}

/* Channels [c, c + n) of a pixel of image `row`. */
V_INLINE void gather(const struct tr_op_pool_backward *a, int64_t row, struct overs down, struct overs across,
                     int64_t c, int64_t n, bool whole, float *dx)
{
    vf sum = v_zero();
    for (int32_t i = 0; i < down.count; i++) {
        int64_t line = (row * a->window.out_h + down.over[i].out) * a->window.out_w;
        for (int32_t j = 0; j < across.count; j++) {
            int64_t at = (line + across.over[j].out) * a->channels + c;
            sum = v_add(sum, passed(a, down.over[i], across.over[j], at, n, whole));
        }
    }
    if (whole)
        v_store(dx + c, sum);
    else
        v_store_part(dx + c, sum, n);
}

static void gather_pixel(const struct tr_op_pool_backward *a, int64_t row, struct overs down,
                         struct overs across, float *dx)
{
    int64_t c = 0, channels = a->channels;
    for (; c + VW <= channels; c += VW) gather(a, row, down, across, c, VW, true, dx);
    if (c < channels) gather(a, row, down, across, c, channels - c, false, dx);
}

/* The scratch of a member: the windows over every column, and over the current line. */
static size_t gather_bytes(const struct tr_sliding_window *g)
{
    return (size_t)g->in_w * (sizeof(struct overs) + (size_t)g->kernel_w * sizeof(struct over)) +
           (size_t)g->kernel_h * sizeof(struct over);
}

struct gathering {
    const struct tr_op_pool_backward *op;
    const struct cpu_device *cpu;
};

static void gather_part(void *arguments, int member, int size)
{
    const struct gathering *with = arguments;
    const struct tr_op_pool_backward *a = with->op;
    const struct tr_sliding_window *g = &a->window;
    struct overs *across = cpu_scratch(with->cpu, member);
    struct over *list = (struct over *)(across + g->in_w);
    for (int32_t w = 0; w < g->in_w; w++, list += g->kernel_w) {
        across[w].over = list;
        across[w].count =
            list_windows(w, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->in_w, g->out_w, list);
    }
    struct overs down = {.over = list};
    int64_t begin, end;
    tr_team_chunk(a->rows * g->in_h, 1, member, size, &begin, &end);
    for (int64_t line = begin; line < end; line++) {
        down.count = list_windows((int32_t)(line % g->in_h), g->stride_h, g->pad_top, g->dilation_h,
                                  g->kernel_h, g->in_h, g->out_h, list);
        for (int32_t w = 0; w < g->in_w; w++)
            gather_pixel(a, line / g->in_h, down, across[w], a->dx + (line * g->in_w + w) * a->channels);
    }
}

/* One line under adjacent windows: the gradient that a window passes to n <= VW channels of its taps in
   line `i`, `step` floats apart. */
V_INLINE void expand(const struct tr_op_pool_backward *a, int64_t at, int32_t i, const int32_t kernel_w,
                     int64_t n, bool whole, float *dx, int64_t step)
{
    vf dy = whole ? v_load(a->dy + at) : v_load_part(a->dy + at, n);
    const vi taken = whole ? vi_load_bytes(a->taken + at) : vi_load_bytes_part(a->taken + at, n);
    if (a->relu_output) {
        vf y = whole ? v_load(a->relu_output + at) : v_load_part(a->relu_output + at, n);
        dy = v_select(v_gt(y, v_zero()), dy, v_zero());
    }
    dy = v_add(v_zero(), dy); /* a sum of one, from +0 */
    for (int32_t j = 0; j < kernel_w; j++) {
        const vf part = v_select(vi_eq(taken, vi_set1(i * kernel_w + j)), dy, v_zero());
        if (whole)
            v_store(dx + j * step, part);
        else
            v_store_part(dx + j * step, part, n);
    }
}

/* A line of windows; the loop over taps is unrolled where their number is a constant. */
V_INLINE void expand_line(const struct tr_op_pool_backward *a, int64_t at, int32_t i, const int32_t kernel_w,
                          int64_t channels, float *dx)
{
    for (int32_t ow = 0; ow < a->window.out_w; ow++, at += a->channels, dx += kernel_w * channels) {
        int64_t c = 0;
        for (; c + VW <= channels; c += VW) expand(a, at + c, i, kernel_w, VW, true, dx + c, channels);
        if (c < channels) expand(a, at + c, i, kernel_w, channels - c, false, dx + c, channels);
    }
}

void pool_backward_line(const struct tr_op_pool_backward *a, int64_t row, int32_t ih, int64_t channel,
                        int64_t channels, float *dx)
{
    const struct tr_sliding_window *g = &a->window;
    const int32_t oh = ih / g->kernel_h, i = ih % g->kernel_h;
    if (oh >= g->out_h) {
        memset(dx, 0, (size_t)(g->in_w * channels) * sizeof(float));
        return;
    }
    const int64_t at = (row * g->out_h + oh) * g->out_w * a->channels + channel;
    const int32_t covered = g->out_w * g->kernel_w;
    if (g->kernel_w == 2)
        expand_line(a, at, i, 2, channels, dx);
    else
        expand_line(a, at, i, g->kernel_w, channels, dx);
    memset(dx + covered * channels, 0, (size_t)((g->in_w - covered) * channels) * sizeof(float));
}

/* Whether the windows tile the upper left of the image without gaps, padding or overlap. */
static bool tiles(const struct tr_sliding_window *g)
{
    return g->stride_h == g->kernel_h && g->stride_w == g->kernel_w && g->pad_top == 0 && g->pad_left == 0 &&
           g->dilation_h == 1 && g->dilation_w == 1 && (int64_t)g->out_h * g->kernel_h <= g->in_h &&
           (int64_t)g->out_w * g->kernel_w <= g->in_w;
}

/* Gives n <= VW channels of a window's gradient to its taps. dx is that of the first tap; lines of the
 * image are `line` floats apart.
 */
V_INLINE void scatter(const struct tr_op_pool_backward *a, int64_t at, int32_t kernel_h, int32_t kernel_w,
                      int64_t n, bool whole, float *dx, int64_t line)
{
    vf dy = whole ? v_load(a->dy + at) : v_load_part(a->dy + at, n);
    vi taken = vi_set1(0);
    if (a->kind == TR_POOL_AVERAGE) {
        dy = v_mul(dy, v_set1(1 / (float)(kernel_h * kernel_w)));
    } else {
        taken = whole ? vi_load_bytes(a->taken + at) : vi_load_bytes_part(a->taken + at, n);
        if (a->relu_output) {
            vf y = whole ? v_load(a->relu_output + at) : v_load_part(a->relu_output + at, n);
            dy = v_select(v_gt(y, v_zero()), dy, v_zero());
        }
    }
    dy = v_add(v_zero(), dy); /* a sum of one, from +0 */
    for (int32_t i = 0; i < kernel_h; i++) {
        for (int32_t j = 0; j < kernel_w; j++) {
            vf part = dy;
            if (a->kind == TR_POOL_MAX)
                part = v_select(vi_eq(taken, vi_set1(i * kernel_w + j)), dy, v_zero());
            float *to = dx + i * line + (int64_t)j * a->channels;
            if (whole)
                v_store(to, part);
            else
                v_store_part(to, part, n);
        }
    }
}

V_INLINE void scatter_pixel(const struct tr_op_pool_backward *a, int64_t at, int32_t kernel_h,
                            int32_t kernel_w, float *dx, int64_t line)
{
    int64_t c = 0;
    for (; c + VW <= a->channels; c += VW) scatter(a, at + c, kernel_h, kernel_w, VW, true, dx + c, line);
    if (c < a->channels) scatter(a, at + c, kernel_h, kernel_w, a->channels - c, false, dx + c, line);
}

/* The lines of the image under the windows of output line `oh`; after the last one also the lines that no
   window covers. */
static void scatter_lines(const struct tr_op_pool_backward *a, int64_t row, int32_t oh)
{
    const struct tr_sliding_window *g = &a->window;
    int64_t channels = a->channels, line = g->in_w * channels,
            covered = (int64_t)g->out_w * g->kernel_w * channels;
    int64_t at = (row * g->out_h + oh) * g->out_w * channels;
    float *dx = a->dx + (row * g->in_h + (int64_t)oh * g->kernel_h) * line;
    for (int32_t ow = 0; ow < g->out_w; ow++, at += channels) {
        float *to = dx + ow * g->kernel_w * channels;
        if (g->kernel_h == 2 && g->kernel_w == 2)
            scatter_pixel(a, at, 2, 2, to, line);
        else
            scatter_pixel(a, at, g->kernel_h, g->kernel_w, to, line);
    }
    for (int32_t i = 0; i < g->kernel_h && covered < line; i++)
        memset(dx + i * line + covered, 0, (size_t)(line - covered) * sizeof(float));
    int64_t left = oh + 1 == g->out_h ? g->in_h - (int64_t)g->out_h * g->kernel_h : 0;
    if (left > 0) memset(dx + g->kernel_h * line, 0, (size_t)(left * line) * sizeof(float));
}

static void scatter_part(void *arguments, int member, int size)
{
    const struct tr_op_pool_backward *a = arguments;
    int64_t begin, end, lines = a->window.out_h;
    tr_team_chunk(a->rows * lines, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) scatter_lines(a, i / lines, (int32_t)(i % lines));
}

tr_status CPU_KERNEL(pool_backward)(tr_device *device, const struct tr_op_pool_backward *a)
{
    struct cpu_device *cpu = cpu_device_of(device);
    double nanoseconds =
        (double)a->rows * a->window.in_h * a->window.in_w * a->channels * NANOSECONDS_PER_TAP;
    if (tiles(&a->window)) {
        cpu_run(cpu, nanoseconds, scatter_part, (void *)a);
        return TR_OK;
    }
    tr_status status = cpu_reserve(cpu, gather_bytes(&a->window), 0);
    if (status != TR_OK) return status;
    struct gathering with = {a, cpu};
    cpu_run(cpu, 2 * nanoseconds, gather_part, &with);
    return TR_OK;
}
