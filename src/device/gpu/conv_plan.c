#include "device/gpu/conv_plan.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

static tr_status too_large(void)
{
    return tr_fail(TR_EUNSUPPORTED,
                   "a convolution is too large for a gpu: images may have 2^26 numbers, its weights 2^31");
}

/* Room for a table of so many numbers, whose positions have 32 bits. */
static tr_status make_room(int64_t numbers, struct gpu_conv_plan *out)
{
    if (numbers > INT32_MAX)
        return tr_fail(TR_EUNSUPPORTED,
                       "a convolution is too large for a gpu: the table of its places would have %lld "
                       "numbers, at most 2^31 are possible; a smaller kernel or image needs fewer",
                       (long long)numbers);
    out->bytes = (size_t)numbers * sizeof *out->table;
    out->table = tr_alloc((size_t)numbers, sizeof *out->table);
    return out->table ? TR_OK : TR_ENOMEM;
}

/* ---- one axis ---- */

/* A tap of a run: its position in the kernel, and the position on the other side that the run's first
   position meets. */
struct axis_tap {
    int32_t kernel, other;
};

/* Positions first, first + step, ... that have the same taps; each meets positions `other_step` after
   those of the one before it. */
struct run {
    int32_t first, count, taps;
    struct axis_tap *tap;
};

struct axis {
    int32_t in, out, kernel, stride, dilation, pad;
    int32_t step, other_step; /* between positions of a run, on this side and on the other */
    int32_t runs;
    struct run *run;
    struct axis_tap *pool;
};

/* The taps of a position, in the order of the chain: of an output ascending in the kernel, of an input
   ascending in the outputs. Returns their number. */
static int32_t list_taps(const struct axis *axis, bool outputs, int32_t position, struct axis_tap *tap)
{
    int32_t count = 0;
    for (int32_t i = 0; i < axis->kernel; i++) {
        int32_t k = outputs ? i : axis->kernel - 1 - i, other;
        if (outputs) {
            other = position * axis->stride + k * axis->dilation - axis->pad;
            if (other < 0 || other >= axis->in) continue;
        } else {
            int32_t from = position + axis->pad - k * axis->dilation;
            if (from < 0 || from % axis->stride != 0) continue;
            other = from / axis->stride;
            if (other >= axis->out) continue;
        }
        tap[count++] = (struct axis_tap){k, other};
    }
    return count;
}

static bool continues(const struct axis *axis, const struct run *run, int32_t taps,
                      const struct axis_tap *tap)
{
    if (run->taps != taps) return false;
    for (int32_t i = 0; i < taps; i++)
        if (run->tap[i].kernel != tap[i].kernel ||
            run->tap[i].other + run->count * axis->other_step != tap[i].other)
            return false;
    return true;
}

/* Cuts the positions of one side into runs. */
static tr_status cut_axis(struct axis *axis, bool outputs)
{
    int32_t positions = outputs ? axis->out : axis->in, used = 0;
    axis->step = outputs ? 1 : axis->stride;
    axis->other_step = outputs ? axis->stride : 1;
    axis->run = tr_alloc_zero((size_t)positions, sizeof *axis->run);
    axis->pool = tr_alloc((size_t)positions * (size_t)axis->kernel, sizeof *axis->pool);
    if (!axis->run || !axis->pool) return TR_ENOMEM;
    for (int32_t begin = 0; begin < axis->step; begin++) {
        struct run *open = NULL;
        for (int32_t at = begin; at < positions; at += axis->step) {
            struct axis_tap *tap = axis->pool + used;
            int32_t taps = list_taps(axis, outputs, at, tap);
            if (!open || !continues(axis, open, taps, tap)) {
                open = &axis->run[axis->runs++];
                *open = (struct run){.first = at, .taps = taps, .tap = tap};
                used += taps;
            }
            open->count++;
        }
    }
    return TR_OK;
}

static void release_axis(struct axis *axis)
{
    tr_free(axis->run);
    tr_free(axis->pool);
}

static void split_window(const struct tr_sliding_window *w, struct axis *y, struct axis *x)
{
    *y = (struct axis){.in = w->in_h,
                       .out = w->out_h,
                       .kernel = w->kernel_h,
                       .stride = w->stride_h,
                       .dilation = w->dilation_h,
                       .pad = w->pad_top};
    *x = (struct axis){.in = w->in_w,
                       .out = w->out_w,
                       .kernel = w->kernel_w,
                       .stride = w->stride_w,
                       .dilation = w->dilation_w,
                       .pad = w->pad_left};
}

/* ---- rectangles ---- */

#define RECTANGLE 10

static void write_rectangle(const struct gpu_conv_shape *shape, const struct axis *ya, const struct axis *xa,
                            const struct run *y, const struct run *x, int32_t *rectangle, int32_t *table)
{
    const struct tr_sliding_window *w = &shape->window;
    bool forward = shape->kind == GPU_CONV_FORWARD;
    int32_t depth = forward ? shape->in_c : shape->out_c, c = forward ? shape->out_c : shape->in_c;
    int32_t a_line = (forward ? w->in_w : w->out_w) * depth, c_line = (forward ? w->out_w : w->in_w) * c;
    int32_t numbers[8] = {y->count,
                          x->count,
                          0,
                          ya->other_step * a_line,
                          xa->other_step * depth,
                          y->first * c_line + x->first * c,
                          ya->step * c_line,
                          xa->step * c};
    memcpy(rectangle, numbers, sizeof numbers);
    for (int32_t i = 0; i < y->taps; i++)
        for (int32_t j = 0; j < x->taps; j++)
            for (int32_t k = 0; k < depth; k++) {
                int32_t tap = y->tap[i].kernel * w->kernel_w + x->tap[j].kernel;
                *table++ = y->tap[i].other * a_line + x->tap[j].other * depth + k;
                *table++ =
                    forward ? (tap * shape->in_c + k) * shape->out_c : tap * shape->in_c * shape->out_c + k;
            }
}

static tr_status make_pixels(const struct gpu_conv_shape *shape, struct gpu_conv_plan *out)
{
    struct axis y, x;
    bool forward = shape->kind == GPU_CONV_FORWARD;
    int64_t depth = forward ? shape->in_c : shape->out_c, numbers = 0;
    split_window(&shape->window, &y, &x);
    tr_status status = cut_axis(&y, forward);
    if (status == TR_OK) status = cut_axis(&x, forward);
    if (status != TR_OK) goto out;
    for (int32_t i = 0; i < y.runs; i++)
        for (int32_t j = 0; j < x.runs; j++) {
            int64_t pixels = (int64_t)y.run[i].count * x.run[j].count;
            numbers += RECTANGLE + 2 * depth * y.run[i].taps * x.run[j].taps;
            out->most = pixels > out->most ? pixels : out->most;
        }
    out->sets = y.runs * x.runs;
    status = make_room(numbers, out);
    if (status != TR_OK) goto out;
    int32_t *rectangle = out->table, at = out->sets * RECTANGLE;
    for (int32_t i = 0; i < y.runs; i++)
        for (int32_t j = 0; j < x.runs; j++, rectangle += RECTANGLE) {
            int32_t count = (int32_t)depth * y.run[i].taps * x.run[j].taps;
            write_rectangle(shape, &y, &x, &y.run[i], &x.run[j], rectangle, out->table + at);
            rectangle[8] = at;
            rectangle[9] = count;
            at += 2 * count;
        }
out:
    release_axis(&y);
    release_axis(&x);
    return status;
}

/* ---- sets of taps ---- */

#define TAPS          4
#define MOST_OF_IMAGE ((1 << 26) - 1)

/* The outputs that meet a tap inside the image; they are consecutive. */
static void outputs_inside(const struct axis *axis, int32_t kernel, int32_t *first, int32_t *count)
{
    *first = *count = 0;
    for (int32_t o = 0; o < axis->out; o++) {
        int32_t i = o * axis->stride + kernel * axis->dilation - axis->pad;
        if (i < 0 || i >= axis->in) continue;
        if ((*count)++ == 0) *first = o;
    }
}

struct tap_set {
    int32_t first_y, height, first_x, width, taps;
};

static void set_of(const struct axis *y, const struct axis *x, int32_t tap, struct tap_set *out)
{
    *out = (struct tap_set){0};
    outputs_inside(y, tap / x->kernel, &out->first_y, &out->height);
    outputs_inside(x, tap % x->kernel, &out->first_x, &out->width);
    if (out->height == 0 || out->width == 0) *out = (struct tap_set){0};
}

/* The number of the set that a tap belongs to; adds a set if none fits. */
static int32_t find_set(struct tap_set *sets, int32_t *count, const struct tap_set *wanted)
{
    for (int32_t s = 0; s < *count; s++)
        if (sets[s].first_y == wanted->first_y && sets[s].height == wanted->height &&
            sets[s].first_x == wanted->first_x && sets[s].width == wanted->width)
            return s;
    sets[*count] = *wanted;
    return (*count)++;
}

static int32_t *write_set(const struct gpu_conv_shape *shape, const struct axis *y, const struct axis *x,
                          const struct tap_set *set, int32_t number, const int32_t *belongs, int32_t *to)
{
    const struct tr_sliding_window *w = &shape->window;
    for (int32_t tap = 0; tap < y->kernel * x->kernel; tap++) {
        if (belongs[tap] != number) continue;
        int32_t down = tap / x->kernel * y->dilation - y->pad, right = tap % x->kernel * x->dilation - x->pad;
        for (int32_t c = 0; c < shape->in_c; c++) {
            *to++ = (down * w->in_w + right) * shape->in_c + c;
            *to++ = (tap * shape->in_c + c) * shape->out_c;
        }
    }
    int32_t pixels = set->height * set->width;
    for (int32_t p = 0; pixels > 0 && p < pixels + GPU_CONV_WRAP; p++) {
        int32_t image = p / pixels, i = set->first_y + p % pixels / set->width,
                j = set->first_x + p % set->width;
        *to++ = ((image * w->in_h + i * y->stride) * w->in_w + j * x->stride) * shape->in_c;
        *to++ = ((image * w->out_h + i) * w->out_w + j) * shape->out_c;
    }
    return to;
}

/* Of an image of inputs or outputs, whichever is larger. */
static int64_t numbers_of_image(const struct gpu_conv_shape *shape)
{
    const struct tr_sliding_window *w = &shape->window;
    const int64_t in = (int64_t)w->in_h * w->in_w * shape->in_c;
    const int64_t outputs = (int64_t)w->out_h * w->out_w * shape->out_c;
    return in > outputs ? in : outputs;
}

static tr_status make_taps(const struct gpu_conv_shape *shape, struct gpu_conv_plan *out)
{
    struct axis y, x;
    split_window(&shape->window, &y, &x);
    int32_t taps = y.kernel * x.kernel;
    struct tap_set *sets = tr_alloc((size_t)taps, sizeof *sets);
    int32_t *belongs = tr_alloc((size_t)taps, sizeof *belongs);
    tr_status status = sets && belongs ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    for (int32_t tap = 0; tap < taps; tap++) {
        struct tap_set wanted;
        set_of(&y, &x, tap, &wanted);
        belongs[tap] = find_set(sets, &out->sets, &wanted);
        sets[belongs[tap]].taps++;
    }
    int64_t numbers = 0;
    const int64_t image = numbers_of_image(shape);
    for (int32_t s = 0; s < out->sets; s++) {
        /* places reach into so many images after the first one */
        int64_t pixels = (int64_t)sets[s].height * sets[s].width;
        if (pixels > 0 && ((pixels + GPU_CONV_WRAP - 1) / pixels + 1) * image > INT32_MAX) {
            status = too_large();
            goto out;
        }
        int64_t rows = (int64_t)sets[s].taps * shape->in_c;
        numbers += TAPS + 2 * rows + 2 * (pixels + GPU_CONV_WRAP);
        out->most = rows > out->most ? rows : out->most;
    }
    status = make_room(numbers, out);
    if (status != TR_OK) goto out;
    int32_t *to = out->table + out->sets * TAPS;
    for (int32_t s = 0; s < out->sets; s++) {
        int32_t begin = (int32_t)(to - out->table), rows = sets[s].taps * shape->in_c;
        int32_t head[TAPS] = {rows, begin, sets[s].height * sets[s].width, begin + 2 * rows};
        memcpy(out->table + s * TAPS, head, sizeof head);
        to = write_set(shape, &y, &x, &sets[s], s, belongs, to);
    }
out:
    tr_free(sets);
    tr_free(belongs);
    return status;
}

tr_status gpu_conv_plan_make(const struct gpu_conv_shape *shape, struct gpu_conv_plan *out)
{
    const struct tr_sliding_window *w = &shape->window;
    int64_t weights = (int64_t)w->kernel_h * w->kernel_w * shape->in_c * shape->out_c;
    *out = (struct gpu_conv_plan){0};
    if (numbers_of_image(shape) > MOST_OF_IMAGE || weights > INT32_MAX) return too_large();
    return shape->kind == GPU_CONV_WEIGHTS ? make_taps(shape, out) : make_pixels(shape, out);
}
