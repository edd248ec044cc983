/* Convolutions, direct and by Winograd's algorithm, and pools over windows. */
#include "device/order/order.h"

#include "base/alloc.h"
#include "device/winograd.h"

#include <string.h>

static float conv_output(const struct tr_op_conv_forward *a, int64_t r, int64_t pixel, int64_t o)
{
    for (int64_t tap = 0; tap < taps_of(&a->window); tap++) {
        const int64_t from = pixel_of(&a->window, pixel, tap);
        for (int64_t c = 0; from >= 0 && c < a->in_c; c++)
            term(a->x[(r * pixels_in(&a->window) + from) * a->in_c + c],
                 a->w[(tap * a->in_c + c) * a->out_c + o]);
    }
    const float sum = chain(0);
    return activated(a->activation, a->slope, a->b ? sum + a->b[o] : sum);
}

ORDER(conv_forward)
{
    const int64_t pixels = pixels_out(&a->window);
    for (int64_t i = 0; i < a->rows * pixels * a->out_c; i++)
        a->y[i] = conv_output(a, i / a->out_c / pixels, i / a->out_c % pixels, i % a->out_c);
}

ORDER(conv_backward_data)
{
    const int64_t in = pixels_in(&a->window), out = pixels_out(&a->window);
    int64_t *tap_of = taps_between(&a->window);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t i = 0; i < in * a->in_c; i++) {
            for (int64_t pixel = 0; pixel < out; pixel++) {
                const int64_t tap = tap_of[i / a->in_c * out + pixel];
                for (int64_t o = 0; tap >= 0 && o < a->out_c; o++)
                    term(a->dy[(r * out + pixel) * a->out_c + o],
                         a->w[(tap * a->in_c + i % a->in_c) * a->out_c + o]);
            }
            a->dx[r * in * a->in_c + i] = chain(0);
        }
    tr_free(tap_of);
}

static float conv_weight_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_conv_backward_weights *a = arguments;
    const int64_t o = k % a->out_c, c = k / a->out_c % a->in_c, tap = k / a->out_c / a->in_c;
    for (int64_t r = first; r < end; r++)
        for (int64_t pixel = 0; pixel < pixels_out(&a->window); pixel++) {
            const int64_t from = pixel_of(&a->window, pixel, tap);
            if (from >= 0)
                term(a->x[(r * pixels_in(&a->window) + from) * a->in_c + c],
                     a->dy[(r * pixels_out(&a->window) + pixel) * a->out_c + o]);
        }
    return chain(0);
}

static float conv_bias_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_conv_backward_weights *a = arguments;
    for (int64_t i = first * pixels_out(&a->window); i < end * pixels_out(&a->window); i++)
        number(a->dy[i * a->out_c + k]);
    return sum_chain(0);
}

ORDER(conv_backward_weights)
{
    each_node(&a->cut, taps_of(&a->window) * a->in_c * a->out_c, a->dw, conv_weight_leaf, a);
    if (a->db) each_node(&a->cut, a->out_c, a->db, conv_bias_leaf, a);
}

/* ---- by groups: as above, among the channels of a group ---- */

ORDER(grouped_conv_forward)
{
    const struct tr_op_conv_forward *op = &a->conv;
    const int64_t pixels = pixels_out(&op->window), ins = op->in_c / a->groups, outs = op->out_c / a->groups;
    for (int64_t i = 0; i < op->rows * pixels * op->out_c; i++) {
        const int64_t o = i % op->out_c, pixel = i / op->out_c % pixels, r = i / op->out_c / pixels;
        for (int64_t k = 0; k < taps_of(&op->window) * ins; k++) {
            const int64_t from = pixel_of(&op->window, pixel, k / ins);
            if (from >= 0)
                term(op->x[(r * pixels_in(&op->window) + from) * op->in_c + o / outs * ins + k % ins],
                     op->w[k * op->out_c + o]);
        }
        const float sum = chain(0);
        op->y[i] = activated(op->activation, op->slope, op->b ? sum + op->b[o] : sum);
    }
}

ORDER(grouped_conv_backward_data)
{
    const struct tr_op_conv_backward_data *op = &a->conv;
    const int64_t in = pixels_in(&op->window), out = pixels_out(&op->window);
    const int64_t ins = op->in_c / a->groups, outs = op->out_c / a->groups;
    int64_t *tap_of = taps_between(&op->window);
    for (int64_t i = 0; i < op->rows * in * op->in_c; i++) {
        const int64_t c = i % op->in_c, to = i / op->in_c % in, r = i / op->in_c / in;
        for (int64_t pixel = 0; pixel < out; pixel++) {
            const int64_t tap = tap_of[to * out + pixel];
            for (int64_t o = c / ins * outs; tap >= 0 && o < (c / ins + 1) * outs; o++)
                term(op->dy[(r * out + pixel) * op->out_c + o], op->w[(tap * ins + c % ins) * op->out_c + o]);
        }
        op->dx[i] = chain(0);
    }
    tr_free(tap_of);
}

static float grouped_weight_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_grouped_conv_backward_weights *a = arguments;
    const struct tr_op_conv_backward_weights *op = &a->conv;
    const int64_t in = pixels_in(&op->window), out = pixels_out(&op->window);
    const int64_t ins = op->in_c / a->groups, outs = op->out_c / a->groups, o = k % op->out_c;
    const int64_t c = o / outs * ins + k / op->out_c % ins, tap = k / op->out_c / ins;
    for (int64_t i = first * out; i < end * out; i++) {
        const int64_t from = pixel_of(&op->window, i % out, tap);
        if (from >= 0) term(op->x[(i / out * in + from) * op->in_c + c], op->dy[i * op->out_c + o]);
    }
    return chain(0);
}

ORDER(grouped_conv_backward_weights)
{
    const struct tr_op_conv_backward_weights *op = &a->conv;
    each_node(&op->cut, taps_of(&op->window) * (op->in_c / a->groups) * op->out_c, op->dw,
              grouped_weight_leaf, a);
    if (op->db) each_node(&op->cut, op->out_c, op->db, conv_bias_leaf, op);
}

/* ---- Winograd: the transforms of one axis are those of device/winograd.inc ---- */

enum { SIDE = TR_WINOGRAD_POINTS, PLACES = TR_WINOGRAD_POSITIONS };
typedef float square[SIDE][SIDE];

/* A tile along an axis: its first output, how many, and the inputs that it reads. With three taps fours; five
   that are left are three and two. With five taps twos, and one that is left. */
struct span {
    int32_t first, outputs, inputs;
};

static int spans_of(int32_t taps, int32_t outputs, struct span span[64])
{
    int count = 0;
    for (int32_t first = 0; first < outputs; first += span[count - 1].outputs) {
        const int32_t left = outputs - first, most = taps == 5 ? 2 : left == 5 ? 3 : 4;
        const int32_t many = left < most ? left : most;
        span[count++] = (struct span){first, many, many + taps - 1};
    }
    return count;
}

/* The points of a tile: 0 a -a b -b infinity, without -b where there are five, without b where there are
 * four. */
static bool has_point(struct span span, int point)
{
    return point < 3 || point == 5 || (point == 3 && span.inputs >= 5) || (point == 4 && span.inputs == 6);
}

typedef void transform(int points, int outputs, const float *from, int64_t from_step, float *to,
                       int64_t to_step);

/* Along the height for each column that is there, then along the width for each row: `wide` columns before,
   or those of the points; `high` rows in between. */
static void both(transform *along, struct span h, struct span w, int wide, int high, square in, square out)
{
    square half;
    for (int j = 0; j < SIDE; j++)
        if (wide ? j < wide : has_point(w, j)) along(h.inputs, h.outputs, &in[0][j], SIDE, &half[0][j], SIDE);
    for (int i = 0; i < SIDE; i++)
        if (high ? i < high : has_point(h, i)) along(w.inputs, w.outputs, half[i], 1, out[i], 1);
}

static void tile_of_input(const float *image, const struct tr_sliding_window *window, int64_t channels,
                          int64_t c, struct span h, struct span w, square out)
{
    square in = {{0}};
    for (int i = 0; i < h.inputs; i++)
        for (int j = 0; j < w.inputs; j++) {
            const int32_t y = h.first + i - window->pad_top, x = w.first + j - window->pad_left;
            if (y >= 0 && y < window->in_h && x >= 0 && x < window->in_w)
                in[i][j] = image[((int64_t)y * window->in_w + x) * channels + c];
        }
    both(tr_winograd_input, h, w, w.inputs, 0, in, out);
}

static void tile_of_gradient(const float *dy, const struct tr_sliding_window *window, int64_t channels,
                             int64_t c, struct span h, struct span w, square out)
{
    square in = {{0}};
    for (int i = 0; i < h.outputs; i++)
        for (int j = 0; j < w.outputs; j++)
            in[i][j] = dy[((int64_t)(h.first + i) * window->out_w + w.first + j) * channels + c];
    both(tr_winograd_output_adjoint, h, w, w.outputs, 0, in, out);
}

/* The weights of all pairs at all places: [in_c][out_c]. */
static square *points_of_weights(int taps, const float *weights, int64_t pairs)
{
    square *u = tr_alloc_zero((size_t)pairs, sizeof *u);
    for (int64_t k = 0; k < pairs; k++) {
        float half[SIDE][5];
        for (int j = 0; j < taps; j++)
            tr_winograd_weights(taps, weights + j * pairs + k, taps * pairs, &half[0][j], 5);
        for (int i = 0; i < SIDE; i++) tr_winograd_weights(taps, half[i], 1, u[k][i], 1);
    }
    return u;
}

ORDER(winograd_forward)
{
    const struct tr_op_conv_forward *conv = &a->conv;
    const struct tr_sliding_window *window = &conv->window;
    struct span high[64], wide[64];
    const int rows = spans_of(window->kernel_h, window->out_h, high);
    const int columns = spans_of(window->kernel_w, window->out_w, wide);
    square *u = points_of_weights(window->kernel_h, conv->w, (int64_t)conv->in_c * conv->out_c);
    square *v = tr_alloc_zero((size_t)conv->in_c, sizeof *v);
    for (int64_t n = 0; n < conv->rows * rows * columns; n++) {
        const struct span h = high[n / columns % rows], w = wide[n % columns];
        const int64_t r = n / columns / rows;
        for (int64_t c = 0; c < conv->in_c; c++)
            tile_of_input(conv->x + r * pixels_in(window) * conv->in_c, window, conv->in_c, c, h, w, v[c]);
        for (int64_t o = 0; o < conv->out_c; o++) {
            square m = {{0}}, y;
            for (int p = 0; p < PLACES; p++) {
                if (!has_point(h, p / SIDE) || !has_point(w, p % SIDE)) continue;
                for (int64_t c = 0; c < conv->in_c; c++)
                    term(v[c][p / SIDE][p % SIDE], u[c * conv->out_c + o][p / SIDE][p % SIDE]);
                m[p / SIDE][p % SIDE] = chain(0);
            }
            both(tr_winograd_output, h, w, 0, h.outputs, m, y);
            for (int k = 0; k < h.outputs * w.outputs; k++) {
                const int i = k / w.outputs, j = k % w.outputs;
                const int64_t pixel = (h.first + i) * (int64_t)window->out_w + w.first + j;
                conv->y[(r * pixels_out(window) + pixel) * conv->out_c + o] =
                    activated(conv->activation, conv->slope, conv->b ? y[i][j] + conv->b[o] : y[i][j]);
            }
        }
    }
    tr_free(u);
    tr_free(v);
}

ORDER(winograd_backward_data)
{
    const struct tr_op_conv_backward_data *conv = &a->conv;
    const struct tr_sliding_window *window = &conv->window;
    struct span high[64], wide[64];
    const int rows = spans_of(window->kernel_h, window->out_h, high);
    const int columns = spans_of(window->kernel_w, window->out_w, wide);
    const int64_t image = pixels_in(window) * conv->in_c;
    square *u = points_of_weights(window->kernel_h, conv->w, (int64_t)conv->in_c * conv->out_c);
    square *z = tr_alloc_zero((size_t)conv->out_c, sizeof *z);
    memset(conv->dx, 0, (size_t)(conv->rows * image) * sizeof *conv->dx);
    for (int64_t n = 0; n < conv->rows * rows * columns; n++) {
        const struct span h = high[n / columns % rows], w = wide[n % columns];
        const int64_t r = n / columns / rows;
        for (int64_t o = 0; o < conv->out_c; o++)
            tile_of_gradient(conv->dy + r * pixels_out(window) * conv->out_c, window, conv->out_c, o, h, w,
                             z[o]);
        for (int64_t c = 0; c < conv->in_c; c++) {
            square d = {{0}}, dx;
            for (int p = 0; p < PLACES; p++) {
                if (!has_point(h, p / SIDE) || !has_point(w, p % SIDE)) continue;
                for (int64_t o = 0; o < conv->out_c; o++)
                    term(z[o][p / SIDE][p % SIDE], u[c * conv->out_c + o][p / SIDE][p % SIDE]);
                d[p / SIDE][p % SIDE] = chain(0);
            }
            both(tr_winograd_input_adjoint, h, w, 0, h.inputs, d, dx);
            for (int i = 0; i < h.inputs; i++)
                for (int j = 0; j < w.inputs; j++) {
                    const int32_t y = h.first + i - window->pad_top, x = w.first + j - window->pad_left;
                    if (y >= 0 && y < window->in_h && x >= 0 && x < window->in_w)
                        conv->dx[r * image + ((int64_t)y * window->in_w + x) * conv->in_c + c] += dx[i][j];
                }
        }
    }
    tr_free(u);
    tr_free(z);
}

/* Both sides of the gradient at the points: v [rows * tiles][in_c], z [rows * tiles][out_c]. */
struct tiled {
    const struct tr_op_conv_backward_weights *conv;
    struct span high[64], wide[64];
    int rows, columns;
    int64_t images;
    square *v, *z;
    square
        *kept; /* of all taps: [images + 1][in_c * out_c], by the first of the rows, the last without rows */
};

/* The gradients of all taps of a pair of channels, of rows first to end. */
static void winograd_taps(const struct tiled *t, int64_t first, int64_t end, int64_t c, int64_t o, square g)
{
    const int64_t out_c = t->conv->out_c, in_c = t->conv->in_c, tiles = t->rows * t->columns;
    const int taps = t->conv->window.kernel_h;
    square s, half;
    for (int p = 0; p < PLACES; p++) {
        for (int64_t n = first * tiles; n < end * tiles; n++)
            if (has_point(t->high[n / t->columns % t->rows], p / SIDE) &&
                has_point(t->wide[n % t->columns], p % SIDE))
                term(t->v[n * in_c + c][p / SIDE][p % SIDE], t->z[n * out_c + o][p / SIDE][p % SIDE]);
        s[p / SIDE][p % SIDE] = chain(0);
    }
    for (int j = 0; j < SIDE; j++) tr_winograd_weights_adjoint(taps, &s[0][j], SIDE, &half[0][j], SIDE);
    for (int i = 0; i < taps; i++) tr_winograd_weights_adjoint(taps, half[i], 1, g[i], 1);
}

static float winograd_weight_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tiled *t = arguments;
    const int64_t pairs = (int64_t)t->conv->out_c * t->conv->in_c, pair = k % pairs, tap = k / pairs;
    const int64_t c = pair / t->conv->out_c, o = pair % t->conv->out_c;
    const int taps = t->conv->window.kernel_h;
    square *g = &t->kept[(first < end ? first : t->images) * pairs + pair];
    if (tap == 0) winograd_taps(t, first, end, c, o, *g);
    return (*g)[tap / taps][tap % taps];
}

ORDER(winograd_backward_weights)
{
    const struct tr_op_conv_backward_weights *conv = &a->conv;
    const struct tr_sliding_window *window = &conv->window;
    struct tiled t = {.conv = conv, .images = rows_of(&conv->cut)};
    t.rows = spans_of(window->kernel_h, window->out_h, t.high);
    t.columns = spans_of(window->kernel_w, window->out_w, t.wide);
    const int64_t tiles = t.rows * t.columns, all = t.images * tiles;
    t.v = tr_alloc_zero((size_t)(all * conv->in_c) + 1, sizeof *t.v);
    t.z = tr_alloc_zero((size_t)(all * conv->out_c) + 1, sizeof *t.z);
    t.kept = tr_alloc_zero((size_t)((t.images + 1) * conv->in_c * conv->out_c), sizeof *t.kept);
    for (int64_t n = 0; n < all; n++) {
        const struct span h = t.high[n / t.columns % t.rows], w = t.wide[n % t.columns];
        const float *x = conv->x + n / tiles * pixels_in(window) * conv->in_c;
        const float *dy = conv->dy + n / tiles * pixels_out(window) * conv->out_c;
        for (int64_t c = 0; c < conv->in_c; c++)
            tile_of_input(x, window, conv->in_c, c, h, w, t.v[n * conv->in_c + c]);
        for (int64_t o = 0; o < conv->out_c; o++)
            tile_of_gradient(dy, window, conv->out_c, o, h, w, t.z[n * conv->out_c + o]);
    }
    each_node(&conv->cut, taps_of(window) * conv->in_c * conv->out_c, conv->dw, winograd_weight_leaf, &t);
    if (conv->db) each_node(&conv->cut, conv->out_c, conv->db, conv_bias_leaf, conv);
    tr_free(t.v);
    tr_free(t.z);
    tr_free(t.kept);
}

ORDER(winograd_backward)
{
    order_winograd_backward_weights(&a->weights);
    order_winograd_backward_data(&a->data);
}
