/* Max and average pools: vectors over channels, one window at a time. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"
#include "device/cpu/convolutions/pool.h"

#define NANOSECONDS_PER_TAP (1.0 / VW)

/* The taps of a window that lie inside the image. */
struct field {
    const float *x; /* the first tap's pixel */
    int64_t line;   /* floats from one kernel row to the next, */
    int64_t pixel;  /* and from one kernel column to the next */
    int32_t rows, columns;
    float share;      /* weight of each tap in a mean */
    int32_t first;    /* the first tap's number */
    int32_t kernel_w; /* tap numbers from one kernel row to the next */
};

/* The maximum of one window over n <= VW channels. */
V_INLINE void maximum(const struct field *f, int64_t n, bool whole, float *y, uint8_t *taken)
{
    vf best = whole ? v_load(f->x) : v_load_part(f->x, n);
    vi where = vi_set1(f->first);
    for (int32_t i = 0; i < f->rows; i++) {
        for (int32_t j = 0; j < f->columns; j++) {
            if (i == 0 && j == 0) continue;
            const float *x = f->x + i * f->line + j * f->pixel;
            vf later = whole ? v_load(x) : v_load_part(x, n);
            vm replaces = v_replaces(later, best);
            best = v_select(replaces, later, best);
            where = vi_select(replaces, vi_set1(f->first + i * f->kernel_w + j), where);
        }
    }
    if (whole) {
        v_store(y, best);
        if (taken) vi_store_bytes(taken, where);
    } else {
        v_store_part(y, best, n);
        if (taken) vi_store_bytes_part(taken, where, n);
    }
}

V_INLINE void average(const struct field *f, int64_t n, bool whole, float *y)
{
    vf sum = v_zero(), share = v_set1(f->share);
    for (int32_t i = 0; i < f->rows; i++) {
        for (int32_t j = 0; j < f->columns; j++) {
            const float *x = f->x + i * f->line + j * f->pixel;
            sum = v_add(sum, whole ? v_load(x) : v_load_part(x, n));
        }
    }
    if (whole)
        v_store(y, v_mul(sum, share));
    else
        v_store_part(y, v_mul(sum, share), n);
}

/* One window, all channels. */
V_INLINE void pool_pixel(struct field f, enum tr_pool kind, int64_t channels, float *y, uint8_t *taken)
{
    int64_t c = 0;
    for (; c + VW <= channels; c += VW, f.x += VW) {
        if (kind == TR_POOL_MAX)
            maximum(&f, VW, true, y + c, taken ? taken + c : NULL);
        else
            average(&f, VW, true, y + c);
    }
    if (c == channels) return;
    if (kind == TR_POOL_MAX)
        maximum(&f, channels - c, false, y + c, taken ? taken + c : NULL);
    else
        average(&f, channels - c, false, y + c);
}

/* A window of any shape. */
static void any_pixel(const struct field *f, enum tr_pool kind, int64_t channels, float *y, uint8_t *taken)
{
    if (kind == TR_POOL_MAX)
        pool_pixel(*f, TR_POOL_MAX, channels, y, taken);
    else
        pool_pixel(*f, TR_POOL_AVERAGE, channels, y, NULL);
}

/* The line of output pixels `oh` of image `row`; the first lines of its windows inside the image are at
 * `line`. Loops for maxima over full windows of `size` x `size` are unrolled (0: none).
 */
V_INLINE void pool_line(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *line,
                        const int32_t size)
{
    const struct tr_sliding_window *w = &a->window;
    int64_t channels = a->channels, out = (row * w->out_h + oh) * w->out_w * channels;
    struct pool_range down = pool_taps(oh, w->stride_h, w->pad_top, w->dilation_h, w->kernel_h, w->in_h);
    struct field f = {.line = (int64_t)w->dilation_h * w->in_w * channels,
                      .pixel = w->dilation_w * channels,
                      .rows = down.end - down.begin,
                      .kernel_w = w->kernel_w};
    for (int32_t ow = 0; ow < w->out_w; ow++, out += channels) {
        struct pool_range across =
            pool_taps(ow, w->stride_w, w->pad_left, w->dilation_w, w->kernel_w, w->in_w);
        f.x = line +
              ((int64_t)ow * w->stride_w - w->pad_left + (int64_t)across.begin * w->dilation_w) * channels;
        f.columns = across.end - across.begin;
        f.share = 1 / (float)(a->count_border ? w->kernel_h * w->kernel_w : f.rows * f.columns);
        f.first = down.begin * w->kernel_w + across.begin;
        uint8_t *taken = a->taken ? a->taken + out : NULL;
        if (size > 0 && f.rows == size && f.columns == size) {
            struct field whole = {.x = f.x,
                                  .line = f.line,
                                  .pixel = f.pixel,
                                  .rows = size,
                                  .columns = size,
                                  .first = 0,
                                  .kernel_w = size};
            pool_pixel(whole, TR_POOL_MAX, channels, a->y + out, taken);
        } else {
            any_pixel(&f, a->kind, channels, a->y + out, taken);
        }
    }
}

static void line_of_any(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *line)
{
    pool_line(a, row, oh, line, 0);
}

static void line_of_2(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *line)
{
    pool_line(a, row, oh, line, 2);
}

static void line_of_3(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *line)
{
    pool_line(a, row, oh, line, 3);
}

typedef void (*line_function)(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *line);

static line_function line_of(const struct tr_op_pool_forward *a)
{
    const struct tr_sliding_window *w = &a->window;
    if (a->kind != TR_POOL_MAX || w->kernel_h != w->kernel_w) return line_of_any;
    return w->kernel_h == 2 ? line_of_2 : w->kernel_h == 3 ? line_of_3 : line_of_any;
}

void pool_forward_line(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *lines)
{
    line_of(a)(a, row, oh, lines);
}

static void pool_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_pool_forward *a = arguments;
    const struct tr_sliding_window *w = &a->window;
    const line_function line = line_of(a);
    int64_t begin, end;
    tr_team_chunk(a->rows * w->out_h, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / w->out_h;
        const int32_t oh = (int32_t)(i % w->out_h);
        struct pool_range down = pool_taps(oh, w->stride_h, w->pad_top, w->dilation_h, w->kernel_h, w->in_h);
        int64_t h = (int64_t)oh * w->stride_h - w->pad_top + (int64_t)down.begin * w->dilation_h;
        line(a, row, oh, a->x + (row * w->in_h + h) * w->in_w * a->channels);
    }
}

tr_status CPU_KERNEL(pool_forward)(tr_device *device, const struct tr_op_pool_forward *a)
{
    const struct tr_sliding_window *w = &a->window;
    double taps = (double)a->rows * w->out_h * w->out_w * w->kernel_h * w->kernel_w * a->channels;
    cpu_run(cpu_device_of(device), taps * NANOSECONDS_PER_TAP, pool_forward_part, (void *)a);
    return TR_OK;
}
