/* Pools, over windows and over the rows of an example, and convolutions with a pool behind them. */
#include "device/order/order.h"

#include "base/alloc.h"

ORDER(pool_forward)
{
    const int64_t pixels = pixels_out(&a->window), taps = taps_of(&a->window);
    for (int64_t i = 0; i < a->rows * pixels * a->channels; i++) {
        const int64_t r = i / a->channels / pixels, pixel = i / a->channels % pixels, c = i % a->channels;
        const float *image = a->x + r * pixels_in(&a->window) * a->channels;
        uint8_t tap_of[256];
        int64_t count = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t from = pixel_of(&a->window, pixel, tap);
            if (from < 0) continue;
            number(image[from * a->channels + c]);
            tap_of[count++] = (uint8_t)tap;
        }
        if (a->kind == TR_POOL_AVERAGE) {
            a->y[i] = sum_chain(0) * (1 / (float)(a->count_border ? taps : count));
            continue;
        }
        const uint8_t tap = tap_of[greatest()];
        a->y[i] = image[pixel_of(&a->window, pixel, tap) * a->channels + c];
        if (a->taken) a->taken[i] = tap;
    }
}

ORDER(pool_backward)
{
    const int64_t in = pixels_in(&a->window), out = pixels_out(&a->window), taps = taps_of(&a->window);
    int64_t *tap_of = taps_between(&a->window);
    for (int64_t i = 0; i < a->rows * in * a->channels; i++) {
        const int64_t r = i / a->channels / in, c = i % a->channels;
        for (int64_t pixel = 0; pixel < out; pixel++) {
            const int64_t at = (r * out + pixel) * a->channels + c;
            const int64_t mine = tap_of[i / a->channels % in * out + pixel];
            if (mine < 0) continue;
            if (a->kind == TR_POOL_MAX) {
                if (a->taken[at] == mine && (!a->relu_output || a->relu_output[at] > 0)) number(a->dy[at]);
                continue;
            }
            int64_t inside = 0;
            for (int64_t tap = 0; tap < taps; tap++) inside += pixel_of(&a->window, pixel, tap) >= 0;
            number(a->dy[at] * (1 / (float)(a->count_border ? taps : inside)));
        }
        a->dx[i] = sum_chain(0);
    }
    tr_free(tap_of);
}

/* Rows of example e. */
static void rows_of_example(const int32_t *offset, int64_t spatial, int64_t e, int64_t *first, int64_t *end)
{
    *first = offset ? offset[e] : e * spatial;
    *end = offset ? offset[e + 1] : (e + 1) * spatial;
}

ORDER(pool_rows_forward)
{
    for (int64_t i = 0; i < a->examples * a->width; i++) {
        int64_t first, end;
        rows_of_example(a->offset, a->spatial, i / a->width, &first, &end);
        for (int64_t r = first; r < end; r++) number(a->x[r * a->width + i % a->width]);
        if (first == end) {
            a->y[i] = sum_chain(0);
            if (a->taken) a->taken[i] = 0;
        } else if (a->kind == TR_POOL_AVERAGE) {
            a->y[i] = sum_chain(0) * (1 / (float)(end - first));
        } else {
            const int64_t taken = greatest();
            a->y[i] = a->x[(first + taken) * a->width + i % a->width];
            if (a->taken) a->taken[i] = (int32_t)taken;
        }
    }
}

ORDER(pool_rows_backward)
{
    for (int64_t i = 0; i < a->examples * a->width; i++) {
        int64_t first, end;
        rows_of_example(a->offset, a->spatial, i / a->width, &first, &end);
        for (int64_t r = first; r < end; r++)
            a->dx[r * a->width + i % a->width] = a->kind == TR_POOL_AVERAGE
                                                     ? a->dy[i] * (1 / (float)(end - first))
                                                 : a->taken[i] == (int32_t)(r - first) ? a->dy[i]
                                                                                       : 0;
    }
}

/* ---- fusions: what is between the parts is kept here ---- */

static float *between(int64_t rows, const struct tr_sliding_window *window, int64_t channels)
{
    return tr_alloc_zero((size_t)(rows * pixels_out(window) * channels) + 1, sizeof(float));
}

ORDER(conv_pool_forward)
{
    struct tr_op_conv_pool_forward parts = *a;
    float *y = between(a->conv.rows, &a->conv.window, a->conv.out_c);
    parts.conv.y = y;
    parts.pool.x = y;
    order_conv_forward(&parts.conv);
    order_pool_forward(&parts.pool);
    tr_free(y);
}

ORDER(conv_pool_backward_data)
{
    struct tr_op_conv_pool_backward_data parts = *a;
    float *dy = between(a->conv.rows, &a->conv.window, a->conv.out_c);
    parts.pool.dx = dy;
    parts.conv.dy = dy;
    order_pool_backward(&parts.pool);
    order_conv_backward_data(&parts.conv);
    tr_free(dy);
}

ORDER(conv_pool_backward_weights)
{
    struct tr_op_conv_pool_backward_weights parts = *a;
    float *dy = between(rows_of(&a->conv.cut), &a->conv.window, a->conv.out_c);
    parts.pool.dx = dy;
    parts.conv.dy = dy;
    order_pool_backward(&parts.pool);
    order_conv_backward_weights(&parts.conv);
    tr_free(dy);
}
