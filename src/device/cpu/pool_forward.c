/* Max and average pools: vectors over channels, one window at a time. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/lanes.h"
#include "device/cpu/pool.h"

#define NANOSECONDS_PER_TAP (1.0 / VW)

/* The taps of a window that lie inside the image, and where they begin. */
struct field {
    const float *x; /* the first tap's pixel */
    int64_t line;   /* floats from one kernel row to the next, */
    int64_t pixel;  /* and from one kernel column to the next */
    int32_t rows, columns;
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
    vf sum = v_zero(), share = v_set1(1 / (float)(f->rows * f->columns));
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

/* The frequent sizes, with their loops undone. */
V_INLINE void pool_constant(struct field f, const int32_t size, int64_t channels, float *y, uint8_t *taken)
{
    f.rows = f.columns = size;
    pool_pixel(f, TR_POOL_MAX, channels, y, taken);
}

/* The line of output pixels `oh` of image `row`. */
static void pool_line(const struct tr_op_pool_forward *a, int64_t row, int32_t oh)
{
    const struct tr_window *w = &a->window;
    int64_t channels = a->channels, out = (row * w->out_h + oh) * w->out_w * channels;
    struct pool_range vertical = pool_taps(oh, w->stride_h, w->pad_top, w->dilation_h, w->kernel_h, w->in_h);
    struct field f = {.line = (int64_t)w->dilation_h * w->in_w * channels,
                      .pixel = w->dilation_w * channels,
                      .rows = vertical.end - vertical.begin,
                      .kernel_w = w->kernel_w};
    for (int32_t ow = 0; ow < w->out_w; ow++, out += channels) {
        struct pool_range across =
            pool_taps(ow, w->stride_w, w->pad_left, w->dilation_w, w->kernel_w, w->in_w);
        int64_t h = (int64_t)oh * w->stride_h - w->pad_top + (int64_t)vertical.begin * w->dilation_h;
        int64_t v = (int64_t)ow * w->stride_w - w->pad_left + (int64_t)across.begin * w->dilation_w;
        f.x = a->x + ((row * w->in_h + h) * w->in_w + v) * channels;
        f.columns = across.end - across.begin;
        f.first = vertical.begin * w->kernel_w + across.begin;
        uint8_t *taken = a->taken ? a->taken + out : NULL;
        if (a->kind == TR_POOL_AVERAGE) {
            pool_pixel(f, TR_POOL_AVERAGE, channels, a->y + out, NULL);
        } else if (f.rows == 2 && f.columns == 2) {
            pool_constant(f, 2, channels, a->y + out, taken);
        } else if (f.rows == 3 && f.columns == 3) {
            pool_constant(f, 3, channels, a->y + out, taken);
        } else {
            pool_pixel(f, TR_POOL_MAX, channels, a->y + out, taken);
        }
    }
}

static void pool_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_pool_forward *a = arguments;
    int64_t begin, end, lines = a->window.out_h;
    tr_team_share(a->rows * lines, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) pool_line(a, i / lines, (int32_t)(i % lines));
}

tr_status CPU_KERNEL(pool_forward)(tr_device *device, const struct tr_op_pool_forward *a)
{
    const struct tr_window *w = &a->window;
    double taps = (double)a->rows * w->out_h * w->out_w * w->kernel_h * w->kernel_w * a->channels;
    cpu_run(cpu_device_of(device), taps * NANOSECONDS_PER_TAP, pool_forward_part, (void *)a);
    return TR_OK;
}
