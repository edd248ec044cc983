/* Max and average pools. */
#include "base/alloc.h"
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/ref/loops/window.h"

#include <string.h>

/* One output pixel, all channels: the taps of one window. */
static void pool_max(const struct ref_tap *taps, int64_t count, int32_t channels, const float *image,
                     float *y, uint8_t *taken)
{
    for (int32_t c = 0; c < channels; c++) {
        int64_t best = 0;
        for (int64_t t = 1; t < count; t++)
            if (ref_replaces(image[taps[t].pixel * channels + c], image[taps[best].pixel * channels + c]))
                best = t;
        y[c] = image[taps[best].pixel * channels + c];
        if (taken) taken[c] = (uint8_t)taps[best].tap;
    }
}

/* The divisor of a sum over `count` taps inside the image. */
static float divisor(const struct tr_sliding_window *window, bool count_border, int64_t count)
{
    return count_border ? (float)(window->kernel_h * window->kernel_w) : (float)count;
}

static void pool_average(const struct ref_tap *taps, int64_t count, float by, int32_t channels,
                         const float *image, float *y)
{
    float share = 1 / by;
    for (int32_t c = 0; c < channels; c++) {
        float sum = 0;
        for (int64_t t = 0; t < count; t++) sum += image[taps[t].pixel * channels + c];
        y[c] = sum * share;
    }
}

tr_status ref_pool_forward(tr_device *device, const struct tr_op_pool_forward *a)
{
    (void)device;
    const struct tr_sliding_window *window = &a->window;
    struct ref_taps list;
    tr_status status = ref_taps_list(window, &list);
    if (status != TR_OK) return status;
    int64_t pixels = (int64_t)window->out_h * window->out_w;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *image = a->x + r * window->in_h * window->in_w * a->channels;
        for (int64_t p = 0; p < pixels; p++) {
            const struct ref_tap *taps = list.taps + list.start[p];
            int64_t count = list.start[p + 1] - list.start[p], at = (r * pixels + p) * a->channels;
            if (a->kind == TR_POOL_MAX)
                pool_max(taps, count, a->channels, image, a->y + at, a->taken ? a->taken + at : NULL);
            else
                pool_average(taps, count, divisor(window, a->count_border, count), a->channels, image,
                             a->y + at);
        }
    }
    ref_taps_release(&list);
    return TR_OK;
}

/* The gradient that output element `at` passes to its tap; a maximum passes to one tap only. */
static float passed_back(const struct tr_op_pool_backward *a, int64_t at, int32_t tap, int64_t taps)
{
    if (a->kind == TR_POOL_AVERAGE) return a->dy[at] * (1 / divisor(&a->window, a->count_border, taps));
    bool passes = a->taken[at] == tap && (!a->relu_output || a->relu_output[at] > 0);
    return passes ? a->dy[at] : 0;
}

/* Windows add to the pixels that they read, in ascending order. The +0 of a window that passes nothing
 * does not change a sum that began with +0.
 */
tr_status ref_pool_backward(tr_device *device, const struct tr_op_pool_backward *a)
{
    (void)device;
    const struct tr_sliding_window *window = &a->window;
    struct ref_taps list;
    tr_status status = ref_taps_list(window, &list);
    if (status != TR_OK) return status;
    int64_t pixels = (int64_t)window->out_h * window->out_w;
    int64_t image_size = (int64_t)window->in_h * window->in_w * a->channels;
    memset(a->dx, 0, (size_t)(a->rows * image_size) * sizeof *a->dx);
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t p = 0; p < pixels; p++) {
            const struct ref_tap *taps = list.taps + list.start[p];
            int64_t count = list.start[p + 1] - list.start[p], at = (r * pixels + p) * a->channels;
            for (int64_t t = 0; t < count; t++) {
                float *dx = a->dx + r * image_size + taps[t].pixel * a->channels;
                for (int32_t c = 0; c < a->channels; c++) dx[c] += passed_back(a, at + c, taps[t].tap, count);
            }
        }
    }
    ref_taps_release(&list);
    return TR_OK;
}

/* ---- a convolution and the pool after it ---- */

/* The tensor between them; the caller frees it. */
static float *between(const struct tr_sliding_window *pool, int64_t rows, int32_t channels)
{
    return tr_alloc((size_t)(rows * pool->in_h * pool->in_w * channels) + 1, sizeof(float));
}

tr_status ref_conv_pool_forward(tr_device *device, const struct tr_op_conv_pool_forward *a)
{
    struct tr_op_conv_pool_forward parts = *a;
    float *y = between(&a->pool.window, a->pool.rows, a->pool.channels);
    if (!y) return TR_ENOMEM;
    parts.conv.y = y;
    parts.pool.x = y;
    tr_status status = ref_conv_forward(device, &parts.conv);
    if (status == TR_OK) status = ref_pool_forward(device, &parts.pool);
    tr_free(y);
    return status;
}

tr_status ref_conv_pool_backward_data(tr_device *device, const struct tr_op_conv_pool_backward_data *a)
{
    struct tr_op_conv_pool_backward_data parts = *a;
    float *dy = between(&a->pool.window, a->pool.rows, a->pool.channels);
    if (!dy) return TR_ENOMEM;
    parts.pool.dx = dy;
    parts.conv.dy = dy;
    tr_status status = ref_pool_backward(device, &parts.pool);
    if (status == TR_OK) status = ref_conv_backward_data(device, &parts.conv);
    tr_free(dy);
    return status;
}

tr_status ref_conv_pool_backward_weights(tr_device *device, const struct tr_op_conv_pool_backward_weights *a)
{
    struct tr_op_conv_pool_backward_weights parts = *a;
    float *dy = between(&a->pool.window, a->pool.rows, a->pool.channels);
    if (!dy) return TR_ENOMEM;
    parts.pool.dx = dy;
    parts.conv.dy = dy;
    tr_status status = ref_pool_backward(device, &parts.pool);
    if (status == TR_OK) status = ref_conv_backward_weights(device, &parts.conv);
    tr_free(dy);
    return status;
}
