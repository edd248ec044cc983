/* Convolutions by Winograd's algorithm and their gradients. Numbers at the 36 positions are stored as
 * [position][channel]; chains leave out positions that a tile lacks.
 */
#include "device/winograd.h"

#include "device/ref/loops/chain.h"
#include "device/ref/conv.h"
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/tree.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <string.h>

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS
#define TAPS      TR_WINOGRAD_TAPS /* most, along an axis */

/* A tile of one image. */
struct tile {
    struct tr_winograd_tile h, w;
    int32_t ih, iw; /* the first input that it reads; may be outside */
};

static int64_t tile_count(const struct tr_sliding_window *window)
{
    return (int64_t)tr_winograd_tiles(window->kernel_h, window->out_h) *
           tr_winograd_tiles(window->kernel_w, window->out_w);
}

static struct tile tile_at(const struct tr_sliding_window *window, int64_t index)
{
    const int32_t taps = window->kernel_w, across = tr_winograd_tiles(taps, window->out_w);
    struct tile tile = {.h = tr_winograd_tile(taps, window->out_h, (int32_t)(index / across)),
                        .w = tr_winograd_tile(taps, window->out_w, (int32_t)(index % across))};
    tile.ih = tile.h.first - window->pad_top;
    tile.iw = tile.w.first - window->pad_left;
    return tile;
}

static bool has(const struct tile *tile, int position)
{
    return tr_winograd_has(tile->h.points, position / POINTS) &&
           tr_winograd_has(tile->w.points, position % POINTS);
}

/* The number of an input pixel of the tile, -1 outside of the image. */
static int64_t pixel_at(const struct tr_sliding_window *window, const struct tile *tile, int i, int j)
{
    const int32_t h = tile->ih + i, w = tile->iw + j;
    return h < 0 || h >= window->in_h || w < 0 || w >= window->in_w ? -1 : (int64_t)h * window->in_w + w;
}

typedef void transform(int points, int outputs, const float *from, int64_t from_step, float *to,
                       int64_t to_step);

/* Two dimensions: along the height for each of `columns` columns, then along the width for each row that
   the first pass wrote: `rows` of them (0: those of the points of the height). */
static void transform_both(transform *along, const struct tile *tile, int columns, int rows,
                           const float from[POSITIONS], float to[POSITIONS])
{
    float half[POSITIONS];
    for (int j = 0; j < POINTS; j++)
        if (columns ? j < columns : tr_winograd_has(tile->w.points, j))
            along(tile->h.points, tile->h.outputs, from + j, POINTS, half + j, POINTS);
    for (int i = 0; i < POINTS; i++)
        if (rows ? i < rows : tr_winograd_has(tile->h.points, i))
            along(tile->w.points, tile->w.outputs, half + i * POINTS, 1, to + i * POINTS, 1);
}

/* V of a tile: image [in_h][in_w][channels] to v [POSITIONS][channels]. */
static void transform_input(const struct tr_sliding_window *window, const struct tile *tile, int32_t channels,
                            const float *image, float *v)
{
    for (int32_t c = 0; c < channels; c++) {
        float d[POSITIONS] = {0}, at[POSITIONS];
        for (int i = 0; i < tile->h.points; i++)
            for (int j = 0; j < tile->w.points; j++) {
                const int64_t pixel = pixel_at(window, tile, i, j);
                d[i * POINTS + j] = pixel < 0 ? 0.0f : image[pixel * channels + c];
            }
        transform_both(tr_winograd_input, tile, tile->w.points, 0, d, at);
        for (int p = 0; p < POSITIONS; p++)
            if (has(tile, p)) v[(int64_t)p * channels + c] = at[p];
    }
}

/* Z of a tile: dy [out_h][out_w][channels] to z [POSITIONS][channels]. */
static void transform_gradient(const struct tr_sliding_window *window, const struct tile *tile,
                               int32_t channels, const float *dy, float *z)
{
    for (int32_t c = 0; c < channels; c++) {
        float d[POSITIONS] = {0}, at[POSITIONS];
        for (int i = 0; i < tile->h.outputs; i++)
            for (int j = 0; j < tile->w.outputs; j++) {
                const int64_t pixel = (int64_t)(tile->h.first + i) * window->out_w + tile->w.first + j;
                d[i * POINTS + j] = dy[pixel * channels + c];
            }
        transform_both(tr_winograd_output_adjoint, tile, tile->w.outputs, 0, d, at);
        for (int p = 0; p < POSITIONS; p++)
            if (has(tile, p)) z[(int64_t)p * channels + c] = at[p];
    }
}

/* U: w [taps][taps][pairs] to u [POSITIONS][pairs]. */
static void transform_weights(int taps, int64_t pairs, const float *w, float *u)
{
    for (int64_t k = 0; k < pairs; k++) {
        float half[POINTS * TAPS], at[POSITIONS];
        for (int j = 0; j < taps; j++)
            tr_winograd_weights(taps, w + j * pairs + k, taps * pairs, half + j, taps);
        for (int i = 0; i < POINTS; i++) tr_winograd_weights(taps, half + i * taps, 1, at + i * POINTS, 1);
        for (int p = 0; p < POSITIONS; p++) u[p * pairs + k] = at[p];
    }
}

/* Its adjoint: s [POSITIONS][pairs] to dw [taps][taps][pairs]. */
static void transform_sums(int taps, int64_t pairs, const float *s, float *dw)
{
    for (int64_t k = 0; k < pairs; k++) {
        float at[POSITIONS], half[TAPS * POINTS], g[TAPS * TAPS];
        for (int p = 0; p < POSITIONS; p++) at[p] = s[p * pairs + k];
        for (int j = 0; j < POINTS; j++) tr_winograd_weights_adjoint(taps, at + j, POINTS, half + j, POINTS);
        for (int i = 0; i < taps; i++)
            tr_winograd_weights_adjoint(taps, half + i * POINTS, 1, g + i * taps, 1);
        for (int t = 0; t < taps * taps; t++) dw[t * pairs + k] = g[t];
    }
}

/* [POSITIONS] times the counts in `channels`, in one block. NULL when memory is lacking. Free with
   tr_free(). */
static float *positions(int64_t first, int64_t second, int64_t third)
{
    return tr_alloc((size_t)(first + second + third), POSITIONS * sizeof(float));
}

/* Per position of the tile: to[p] = chain over depth of from[p] * u[p]. */
static void multiply(const struct tile *tile, int64_t depth, int64_t width, const float *from, const float *u,
                     float *to)
{
    memset(to, 0, (size_t)(POSITIONS * width) * sizeof *to);
    for (int p = 0; p < POSITIONS; p++)
        if (has(tile, p))
            ref_chain_rows(depth, width, from + p * depth, u + p * depth * width, to + p * width);
}

tr_status ref_winograd_forward(tr_device *device, const struct tr_op_winograd_forward *arguments)
{
    (void)device;
    const struct tr_op_conv_forward *a = &arguments->conv;
    const struct tr_sliding_window *window = &a->window;
    assert(tr_winograd_suits(window) && !tr_activation_reads_input(a->activation));
    const int64_t pairs = (int64_t)a->in_c * a->out_c;
    float *u = positions(pairs, a->in_c, a->out_c);
    if (!u) return TR_ENOMEM;
    float *v = u + POSITIONS * pairs, *m = v + (int64_t)POSITIONS * a->in_c;
    transform_weights(window->kernel_h, pairs, a->w, u);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t t = 0; t < tile_count(window); t++) {
            const struct tile tile = tile_at(window, t);
            transform_input(window, &tile, a->in_c, a->x + r * window->in_h * window->in_w * a->in_c, v);
            multiply(&tile, a->in_c, a->out_c, v, u, m);
            float *image = a->y + r * window->out_h * window->out_w * a->out_c;
            for (int32_t k = 0; k < a->out_c; k++) {
                float at[POSITIONS], y[POSITIONS];
                for (int p = 0; p < POSITIONS; p++) at[p] = m[(int64_t)p * a->out_c + k];
                transform_both(tr_winograd_output, &tile, 0, tile.h.outputs, at, y);
                for (int i = 0; i < tile.h.outputs; i++)
                    for (int j = 0; j < tile.w.outputs; j++)
                        image[((int64_t)(tile.h.first + i) * window->out_w + tile.w.first + j) * a->out_c +
                              k] = y[i * POINTS + j];
            }
        }
    for (int64_t i = 0; i < a->rows * window->out_h * window->out_w; i++)
        ref_finish_row(a->out_c, a->b, a->activation, a->slope, a->y + i * a->out_c);
    tr_free(u);
    return TR_OK;
}

tr_status ref_winograd_backward_data(tr_device *device, const struct tr_op_winograd_backward_data *arguments)
{
    (void)device;
    const struct tr_op_conv_backward_data *a = &arguments->conv;
    const struct tr_sliding_window *window = &a->window;
    assert(tr_winograd_suits(window));
    const int64_t pairs = (int64_t)a->in_c * a->out_c;
    float *transposed = ref_transposed((int64_t)window->kernel_h * window->kernel_w, a->in_c, a->out_c, a->w);
    float *u = positions(pairs, a->in_c, a->out_c);
    if (!transposed || !u) {
        tr_free(transposed);
        tr_free(u);
        return TR_ENOMEM;
    }
    float *z = u + POSITIONS * pairs, *d = z + (int64_t)POSITIONS * a->out_c;
    transform_weights(window->kernel_h, pairs, transposed, u);
    const int64_t image_size = (int64_t)window->in_h * window->in_w * a->in_c;
    memset(a->dx, 0, (size_t)(a->rows * image_size) * sizeof *a->dx);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t t = 0; t < tile_count(window); t++) {
            const struct tile tile = tile_at(window, t);
            transform_gradient(window, &tile, a->out_c, a->dy + r * window->out_h * window->out_w * a->out_c,
                               z);
            multiply(&tile, a->out_c, a->in_c, z, u, d);
            for (int32_t c = 0; c < a->in_c; c++) {
                float at[POSITIONS], dx[POSITIONS];
                for (int p = 0; p < POSITIONS; p++) at[p] = d[(int64_t)p * a->in_c + c];
                transform_both(tr_winograd_input_adjoint, &tile, 0, tile.h.points, at, dx);
                for (int i = 0; i < tile.h.points; i++)
                    for (int j = 0; j < tile.w.points; j++) {
                        const int64_t pixel = pixel_at(window, &tile, i, j);
                        if (pixel >= 0) a->dx[r * image_size + pixel * a->in_c + c] += dx[i * POINTS + j];
                    }
            }
        }
    tr_free(transposed);
    tr_free(u);
    return TR_OK;
}

struct weights_arguments {
    const struct tr_op_conv_backward_weights *op;
    float *v, *z, *s; /* [POSITIONS] times in_c, out_c, in_c * out_c */
};

static void weights_leaf(const void *arguments, int32_t microbatch, float *dw)
{
    const struct weights_arguments *with = arguments;
    const struct tr_op_conv_backward_weights *a = with->op;
    const struct tr_sliding_window *window = &a->window;
    const int64_t pairs = (int64_t)a->in_c * a->out_c;
    memset(with->s, 0, (size_t)(POSITIONS * pairs) * sizeof *with->s);
    for (int64_t r = a->cut.row[microbatch]; r < a->cut.row[microbatch + 1]; r++)
        for (int64_t t = 0; t < tile_count(window); t++) {
            const struct tile tile = tile_at(window, t);
            transform_input(window, &tile, a->in_c, a->x + r * window->in_h * window->in_w * a->in_c,
                            with->v);
            transform_gradient(window, &tile, a->out_c, a->dy + r * window->out_h * window->out_w * a->out_c,
                               with->z);
            for (int p = 0; p < POSITIONS; p++)
                if (has(&tile, p))
                    ref_chain_outer(a->in_c, a->out_c, with->v + (int64_t)p * a->in_c,
                                    with->z + (int64_t)p * a->out_c, with->s + p * pairs);
        }
    transform_sums(window->kernel_h, pairs, with->s, dw);
}

tr_status ref_winograd_backward_weights(tr_device *device,
                                        const struct tr_op_winograd_backward_weights *arguments)
{
    (void)device;
    const struct tr_op_conv_backward_weights *a = &arguments->conv;
    assert(tr_winograd_suits(&a->window));
    const int64_t pairs = (int64_t)a->in_c * a->out_c;
    float *s = positions(pairs, a->in_c, a->out_c);
    if (!s) return TR_ENOMEM;
    struct weights_arguments with = {.op = a, .s = s, .v = s + POSITIONS * pairs};
    with.z = with.v + (int64_t)POSITIONS * a->in_c;
    tr_status status =
        ref_tree(&a->cut, a->window.kernel_h * a->window.kernel_w * pairs, weights_leaf, &with, a->dw);
    if (status == TR_OK && a->db) status = ref_conv_bias(a);
    tr_free(s);
    return status;
}

tr_status ref_winograd_backward(tr_device *device, const struct tr_op_winograd_backward *a)
{
    TR_TRY(ref_winograd_backward_weights(device, &a->weights));
    return ref_winograd_backward_data(device, &a->data);
}
