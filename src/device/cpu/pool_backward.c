/* Gradients of pools. Each input pixel gathers from the windows over it, so that dx is written once and in
 * order; windows that do not overlap hand out their gradient directly, which reads it once. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/pool.h"
#include "device/cpu/vec.h"

#include <string.h>

#define NANOSECONDS_PER_TAP (1.0 / VW)

/* A window over a pixel. */
struct source {
    int64_t at;  /* of its first channel in dy */
    int32_t tap; /* which of its taps the pixel is */
    float share; /* 1 / taps, for averages */
};

/* The most windows over a pixel: one per tap. */
#define SOURCES 256

/* What window `from` passes to n <= VW channels of its pixel, c being the first. */
V_INLINE vf passed(const struct tr_op_pool_backward *a, struct source from, int64_t c, int64_t n, bool whole)
{
    int64_t at = from.at + c;
    vf dy = whole ? v_load(a->dy + at) : v_load_part(a->dy + at, n);
    if (a->kind == TR_POOL_AVERAGE) return v_mul(dy, v_set1(from.share));
    if (a->relu_output) {
        vf y = whole ? v_load(a->relu_output + at) : v_load_part(a->relu_output + at, n);
        dy = v_select(v_gt(y, v_zero()), dy, v_zero());
    }
    vi taken = whole ? vi_load_bytes(a->taken + at) : vi_load_bytes_part(a->taken + at, n);
    return v_select(vi_eq(taken, vi_set1(from.tap)), dy, v_zero());
}

static void gather_pixel(const struct tr_op_pool_backward *a, const struct source *sources, int count,
                         float *dx)
{
    int64_t c = 0, channels = a->channels;
    for (; c + VW <= channels; c += VW) {
        vf sum = v_zero();
        for (int s = 0; s < count; s++) sum = v_add(sum, passed(a, sources[s], c, VW, true));
        v_store(dx + c, sum);
    }
    if (c == channels) return;
    vf sum = v_zero();
    for (int s = 0; s < count; s++) sum = v_add(sum, passed(a, sources[s], c, channels - c, false));
    v_store_part(dx + c, sum, channels - c);
}

/* The number of the tap that falls on `in` in the window at `out`, or -1. */
static int32_t tap_at(int32_t in, int32_t out, int32_t stride, int32_t pad, int32_t dilation)
{
    int32_t distance = in + pad - out * stride;
    if (dilation == 1) return distance;
    return distance % dilation == 0 ? distance / dilation : -1;
}

/* The windows over pixel (h, w) of image `row`, ascending. */
static int list_sources(const struct tr_op_pool_backward *a, int64_t row, int32_t h, int32_t w,
                        struct source sources[SOURCES])
{
    const struct tr_window *g = &a->window;
    struct pool_range down = pool_windows(h, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->out_h);
    struct pool_range across =
        pool_windows(w, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->out_w);
    int count = 0;
    for (int32_t oh = down.begin; oh < down.end; oh++) {
        int32_t kh = tap_at(h, oh, g->stride_h, g->pad_top, g->dilation_h);
        if (kh < 0) continue;
        struct pool_range rows = pool_taps(oh, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->in_h);
        for (int32_t ow = across.begin; ow < across.end; ow++) {
            int32_t kw = tap_at(w, ow, g->stride_w, g->pad_left, g->dilation_w);
            if (kw < 0) continue;
            struct source *s = &sources[count++];
            s->at = ((row * g->out_h + oh) * g->out_w + ow) * a->channels;
            s->tap = kh * g->kernel_w + kw;
            if (a->kind != TR_POOL_AVERAGE) continue;
            struct pool_range columns =
                pool_taps(ow, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->in_w);
            s->share = 1 / (float)((rows.end - rows.begin) * (columns.end - columns.begin));
        }
    }
    return count;
}

static void gather_part(void *arguments, int member, int size)
{
    const struct tr_op_pool_backward *a = arguments;
    const struct tr_window *g = &a->window;
    struct source sources[SOURCES];
    int64_t begin, end;
    tr_team_share(a->rows * g->in_h, 1, member, size, &begin, &end);
    for (int64_t line = begin; line < end; line++) {
        for (int32_t w = 0; w < g->in_w; w++) {
            int count = list_sources(a, line / g->in_h, (int32_t)(line % g->in_h), w, sources);
            gather_pixel(a, sources, count, a->dx + (line * g->in_w + w) * a->channels);
        }
    }
}

/* Whether the windows tile the upper left of the image without gaps, padding or overlap. */
static bool tiles(const struct tr_window *g)
{
    return g->stride_h == g->kernel_h && g->stride_w == g->kernel_w && g->pad_top == 0 && g->pad_left == 0 &&
           g->dilation_h == 1 && g->dilation_w == 1 && (int64_t)g->out_h * g->kernel_h <= g->in_h &&
           (int64_t)g->out_w * g->kernel_w <= g->in_w;
}

/* Hands n <= VW channels of a window's gradient to its taps. dx is the first tap's, `line` floats lie between
 * the lines of the image. */
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

/* The lines of the image under the windows of output line `oh`; below the last, what no window covers. */
static void scatter_lines(const struct tr_op_pool_backward *a, int64_t row, int32_t oh)
{
    const struct tr_window *g = &a->window;
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
    tr_team_share(a->rows * lines, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) scatter_lines(a, i / lines, (int32_t)(i % lines));
}

tr_status CPU_KERNEL(pool_backward)(tr_device *device, const struct tr_op_pool_backward *a)
{
    const struct tr_window *g = &a->window;
    double nanoseconds = (double)a->rows * g->in_h * g->in_w * a->channels * NANOSECONDS_PER_TAP;
    cpu_run(cpu_device_of(device), nanoseconds, tiles(g) ? scatter_part : gather_part, (void *)a);
    return TR_OK;
}
