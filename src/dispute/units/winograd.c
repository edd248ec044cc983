/* Units of convolutions by Winograd's algorithm: an output, with all positions of its tiles. */
#include "device/winograd.h"

#include "dispute/units/numbers.h"

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS
#define TAPS      TR_WINOGRAD_TAPS

#define W_NAME(name)   num_winograd_##name
#define W_F            struct num
#define W_SET(c)       constant(c)
#define W_FMA(a, b, c) fused(a, b, c)
#define W_ADD(a, b)    add(a, b)
#define W_SUB(a, b)    sub(a, b)
#define W_MUL(a, b)    mul(a, b)
#define W_INLINE       static inline
#include "device/winograd.inc"

/* ---- tiles ---- */

struct tile {
    struct tr_winograd_tile h, w;
    int64_t ih, iw; /* the first input that it reads */
};

static int64_t tiles_of(const struct tr_sliding_window *window)
{
    return (int64_t)tr_winograd_tiles(window->kernel_h, window->out_h) *
           tr_winograd_tiles(window->kernel_w, window->out_w);
}

static struct tile tile_at(const struct tr_sliding_window *window, int64_t number)
{
    const int32_t taps = window->kernel_w, across = tr_winograd_tiles(taps, window->out_w);
    struct tile tile = {.h = tr_winograd_tile(taps, window->out_h, (int32_t)(number / across)),
                        .w = tr_winograd_tile(taps, window->out_w, (int32_t)(number % across))};
    tile.ih = tile.h.first - window->pad_top;
    tile.iw = tile.w.first - window->pad_left;
    return tile;
}

static bool has(const struct tile *tile, int position)
{
    return tr_winograd_has(tile->h.points, position / POINTS) &&
           tr_winograd_has(tile->w.points, position % POINTS);
}

typedef void transform(int points, int outputs, const struct num *from, int64_t from_step, struct num *to,
                       int64_t to_step);

/* Along the height for each of `columns` columns (0: those of the points), then along the width for each of
   `rows` rows (0: likewise). */
static void both(transform *along, const struct tile *tile, int columns, int rows,
                 const struct num from[POSITIONS], struct num to[POSITIONS])
{
    struct num half[POSITIONS];
    for (int i = 0; i < POSITIONS; i++) half[i] = from[0];
    for (int j = 0; j < POINTS; j++)
        if (columns ? j < columns : tr_winograd_has(tile->w.points, j))
            along(tile->h.points, tile->h.outputs, from + j, POINTS, half + j, POINTS);
    for (int i = 0; i < POINTS; i++)
        if (rows ? i < rows : tr_winograd_has(tile->h.points, i))
            along(tile->w.points, tile->w.outputs, half + (ptrdiff_t)i * POINTS, 1,
                  to + (ptrdiff_t)i * POINTS, 1);
}

/* V of a channel of an image. */
static void input_at(const struct tr_sliding_window *window, const struct tile *tile, const float *image,
                     int64_t channels, int64_t c, struct num v[POSITIONS])
{
    struct num d[POSITIONS];
    const struct num zero = constant(0);
    for (int i = 0; i < POSITIONS; i++) d[i] = v[i] = zero;
    for (int i = 0; i < tile->h.points; i++)
        for (int j = 0; j < tile->w.points; j++) {
            const int64_t h = tile->ih + i, w = tile->iw + j;
            if (h >= 0 && h < window->in_h && w >= 0 && w < window->in_w)
                d[i * POINTS + j] = in(image + (h * window->in_w + w) * channels + c);
        }
    both(num_winograd_input, tile, tile->w.points, 0, d, v);
}

/* Z of a channel of dy of an image. */
static void gradient_at(const struct tr_sliding_window *window, const struct tile *tile, const float *dy,
                        int64_t channels, int64_t o, struct num z[POSITIONS])
{
    struct num d[POSITIONS];
    const struct num zero = constant(0);
    for (int i = 0; i < POSITIONS; i++) d[i] = z[i] = zero;
    for (int i = 0; i < tile->h.outputs; i++)
        for (int j = 0; j < tile->w.outputs; j++)
            d[i * POINTS + j] =
                in(dy + ((int64_t)(tile->h.first + i) * window->out_w + tile->w.first + j) * channels + o);
    both(num_winograd_output_adjoint, tile, tile->w.outputs, 0, d, z);
}

/* U of a pair of channels, weights [taps][taps][pairs]. */
static void weights_at(int taps, const float *w, int64_t pairs, int64_t pair, struct num u[POSITIONS])
{
    struct num g[TAPS * TAPS], half[POINTS * TAPS];
    for (int t = 0; t < taps * taps; t++) g[t] = in(w + t * pairs + pair);
    for (int j = 0; j < taps; j++) num_winograd_weights(taps, g + j, taps, half + j, taps);
    for (int i = 0; i < POINTS; i++)
        num_winograd_weights(taps, half + (ptrdiff_t)i * taps, 1, u + (ptrdiff_t)i * POINTS, 1);
}

/* ---- operations ---- */

UNIT(winograd_forward)
{
    const struct tr_op_conv_forward *conv = &a->conv;
    const struct tr_sliding_window *window = &conv->window;
    const int64_t o = to->at % conv->out_c, p = to->at / conv->out_c % pixels_out(window);
    const int64_t r = to->at / conv->out_c / pixels_out(window);
    const int64_t h = p / window->out_w, w = p % window->out_w;
    struct num m[POSITIONS], v[POSITIONS], u[POSITIONS], y[POSITIONS];
    int64_t number = 0;
    struct tile tile = tile_at(window, 0);
    while (h < tile.h.first || h >= tile.h.first + tile.h.outputs || w < tile.w.first ||
           w >= tile.w.first + tile.w.outputs)
        tile = tile_at(window, ++number);
    for (int i = 0; i < POSITIONS; i++) m[i] = constant(0);
    for (int64_t c = 0; c < conv->in_c; c++) {
        input_at(window, &tile, conv->x + r * pixels_in(window) * conv->in_c, conv->in_c, c, v);
        weights_at(window->kernel_h, conv->w, (int64_t)conv->in_c * conv->out_c, c * conv->out_c + o, u);
        for (int i = 0; i < POSITIONS; i++)
            if (has(&tile, i)) m[i] = fused(v[i], u[i], m[i]);
    }
    both(num_winograd_output, &tile, 0, tile.h.outputs, m, y);
    struct num sum = y[(h - tile.h.first) * POINTS + w - tile.w.first];
    if (conv->b) sum = add(sum, in(conv->b + o));
    return activated(conv->activation, conv->slope, sum);
}

UNIT(winograd_backward_data)
{
    const struct tr_op_conv_backward_data *conv = &a->conv;
    const struct tr_sliding_window *window = &conv->window;
    const int64_t c = to->at % conv->in_c, p = to->at / conv->in_c % pixels_in(window);
    const int64_t r = to->at / conv->in_c / pixels_in(window);
    struct num sum = constant(0), d[POSITIONS], z[POSITIONS], u[POSITIONS], dx[POSITIONS];
    for (int64_t number = 0; number < tiles_of(window); number++) {
        const struct tile tile = tile_at(window, number);
        const int64_t i = p / window->in_w - tile.ih, j = p % window->in_w - tile.iw;
        if (i < 0 || i >= tile.h.points || j < 0 || j >= tile.w.points) continue;
        for (int k = 0; k < POSITIONS; k++) d[k] = constant(0);
        for (int64_t o = 0; o < conv->out_c; o++) {
            gradient_at(window, &tile, conv->dy + r * pixels_out(window) * conv->out_c, conv->out_c, o, z);
            weights_at(window->kernel_h, conv->w, (int64_t)conv->in_c * conv->out_c, c * conv->out_c + o, u);
            for (int k = 0; k < POSITIONS; k++)
                if (has(&tile, k)) d[k] = fused(z[k], u[k], d[k]);
        }
        both(num_winograd_input_adjoint, &tile, 0, tile.h.points, d, dx);
        sum = add(sum, dx[i * POINTS + j]);
    }
    return sum;
}

static struct num weights_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_conv_backward_weights *a = arguments;
    const struct tr_sliding_window *window = &a->window;
    const int64_t o = at % a->out_c, c = at / a->out_c % a->in_c, tap = at / a->out_c / a->in_c;
    const int taps = window->kernel_h;
    struct num s[POSITIONS], v[POSITIONS], z[POSITIONS], half[TAPS * POINTS], g[TAPS * TAPS];
    for (int i = 0; i < POSITIONS; i++) s[i] = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        for (int64_t number = 0; number < tiles_of(window); number++) {
            const struct tile tile = tile_at(window, number);
            input_at(window, &tile, a->x + r * pixels_in(window) * a->in_c, a->in_c, c, v);
            gradient_at(window, &tile, a->dy + r * pixels_out(window) * a->out_c, a->out_c, o, z);
            for (int i = 0; i < POSITIONS; i++)
                if (has(&tile, i)) s[i] = fused(v[i], z[i], s[i]);
        }
    for (int j = 0; j < POINTS; j++) num_winograd_weights_adjoint(taps, s + j, POINTS, half + j, POINTS);
    for (int i = 0; i < taps; i++)
        num_winograd_weights_adjoint(taps, half + (ptrdiff_t)i * POINTS, 1, g + (ptrdiff_t)i * taps, 1);
    return g[tap];
}

static struct num bias_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_conv_backward_weights *a = arguments;
    const int64_t pixels = pixels_out(&a->window);
    struct num sum = constant(0);
    for (int64_t p = cut_begin(&a->cut, microbatch) * pixels; p < cut_end(&a->cut, microbatch) * pixels; p++)
        sum = add(sum, in(a->dy + p * a->out_c + at));
    return sum;
}

UNIT(winograd_backward_weights)
{
    return over_cut(&a->conv.cut, to->node, is(to, "conv.dw") ? weights_leaf : bias_leaf, &a->conv, to->at);
}

const struct unit_entry unit_winograd[] = {UNIT_ENTRY(winograd_forward) UNIT_ENTRY(winograd_backward_data)
                                               UNIT_ENTRY(winograd_backward_weights) UNIT_END};
