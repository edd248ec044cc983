/* Operators that look at images through windows: convolutions and pools. */
#include "export/onnx/node.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

struct window {
    int axes;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
};

static struct window window_of(const struct node *node)
{
    struct window window = {.axes = node->x->rank - 2};
    node_integers(node, "kernel_shape", window.axes, -1, window.kernel);
    node_integers(node, "strides", window.axes, 1, window.stride);
    node_integers(node, "dilations", window.axes, 1, window.dilation);
    node_integers(node, "pads", 2 * window.axes, 0, window.pads);
    return window;
}

static int64_t taps_of(const struct window *window)
{
    return window->kernel[0] * (window->axes == 2 ? window->kernel[1] : 1);
}

/* The place in the input that tap `tap` meets at `index` of the output; false: in the padding. */
static bool meet(const struct window *window, const int64_t *size, const int64_t *index, int64_t tap,
                 int64_t *place)
{
    bool inside = true;
    for (int i = window->axes - 1; i >= 0; i--) {
        place[i] =
            index[i] * window->stride[i] - window->pads[i] + tap % window->kernel[i] * window->dilation[i];
        tap /= window->kernel[i];
        inside &= place[i] >= 0 && place[i] < size[i];
    }
    return inside;
}

static void size_under(const struct window *window, const struct onnx_value *x, int64_t channels,
                       int64_t *size)
{
    size[0] = x->size[0];
    size[1] = channels;
    for (int i = 0; i < window->axes; i++)
        size[2 + i] = (x->size[2 + i] + window->pads[i] + window->pads[window->axes + i] -
                       window->dilation[i] * (window->kernel[i] - 1) - 1) /
                          window->stride[i] +
                      1;
}

static void conv(struct node *node)
{
    const struct onnx_value *x = node->x, *w = node_in(node, 1);
    const struct window window = window_of(node);
    const int64_t groups = node_integer(node, "group", 1), own = w->size[1], each = w->size[0] / groups,
                  taps = taps_of(&window);
    int64_t size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    assert_int_equal(own * groups, x->size[1]);
    for (int i = 0; i < window.axes; i++) assert_int_equal(w->size[2 + i], window.kernel[i]);
    assert_true(w->rank == x->rank && w->size[0] % groups == 0);
    if (node_has(node, 2)) assert_int_equal(node_in(node, 2)->count, w->size[0]);
    size_under(&window, x, w->size[0], size);
    struct onnx_value *y = node_out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        y->v[k] = node_has(node, 2) ? node_in(node, 2)->v[index[1]] : 0;
        for (int64_t c = 0; c < own; c++)
            for (int64_t tap = 0; tap < taps; tap++) {
                from[0] = index[0];
                from[1] = index[1] / each * own + c;
                if (meet(&window, x->size + 2, index + 2, tap, from + 2))
                    y->v[k] += x->v[place_of(x, from)] * w->v[(index[1] * own + c) * taps + tap];
            }
    }
}

/* Each number of the input adds a kernel to the output. */
static void conv_transpose(struct node *node)
{
    const struct onnx_value *x = node->x, *w = node_in(node, 1);
    const struct window window = window_of(node);
    const int64_t groups = node_integer(node, "group", 1), own = w->size[1], each = x->size[1] / groups,
                  taps = taps_of(&window);
    int64_t size[ONNX_AXES] = {x->size[0], own * groups}, index[ONNX_AXES], to[ONNX_AXES], more[2];
    node_integers(node, "output_padding", window.axes, 0, more);
    for (int i = 0; i < window.axes; i++)
        size[2 + i] = window.stride[i] * (x->size[2 + i] - 1) + more[i] +
                      (window.kernel[i] - 1) * window.dilation[i] + 1 - window.pads[i] -
                      window.pads[window.axes + i];
    struct onnx_value *y = node_out(node, x->rank, size);
    assert_int_equal(w->size[0], x->size[1]);
    assert_true(w->rank == x->rank && x->size[1] % groups == 0 && !node_has(node, 2));
    for (int i = 0; i < window.axes; i++) assert_int_equal(w->size[2 + i], window.kernel[i]);
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        for (int64_t c = 0; c < own; c++)
            for (int64_t tap = 0; tap < taps; tap++) {
                to[0] = index[0];
                to[1] = index[1] / each * own + c;
                if (meet(&window, size + 2, index + 2, tap, to + 2))
                    y->v[place_of(y, to)] += x->v[k] * w->v[(index[1] * own + c) * taps + tap];
            }
    }
}

static void pool(struct node *node)
{
    const struct onnx_value *x = node->x;
    const struct window window = window_of(node);
    const bool most = strcmp(node->proto->op_type, "MaxPool") == 0;
    int64_t size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    size_under(&window, x, x->size[1], size);
    struct onnx_value *y = node_out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        double best = -INFINITY, sum = 0;
        int64_t met = 0;
        index_of(k, x->rank, size, index);
        from[0] = index[0], from[1] = index[1];
        for (int64_t tap = 0; tap < taps_of(&window); tap++) {
            if (!meet(&window, x->size + 2, index + 2, tap, from + 2)) continue;
            const double value = x->v[place_of(x, from)];
            best = fmax(best, value);
            sum += value;
            met++;
        }
        if (node_integer(node, "count_include_pad", 0)) met = taps_of(&window);
        y->v[k] = most ? best : sum / (double)met;
    }
}

static void global_pool(struct node *node)
{
    const struct onnx_value *x = node->x;
    const bool most = strcmp(node->proto->op_type, "GlobalMaxPool") == 0;
    const int64_t pixels = x->size[2] * x->size[3];
    struct onnx_value *y = node_out(node, 4, (const int64_t[]){x->size[0], x->size[1], 1, 1});
    for (int64_t k = 0; k < y->count; k++) {
        double best = -INFINITY, sum = 0;
        for (int64_t i = 0; i < pixels; i++) {
            best = fmax(best, x->v[k * pixels + i]);
            sum += x->v[k * pixels + i];
        }
        y->v[k] = most ? best : sum / (double)pixels;
    }
}

const struct onnx_operator onnx_windows[] = {
    {"AveragePool", pool},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"MaxPool", pool},
    {NULL, NULL},
};
