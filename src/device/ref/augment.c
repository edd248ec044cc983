/* Images and their labels with a view for each row, and mixtures of two images. */
#include "device/ref/ref.h"

#include <math.h>

#define ONE 65536 /* units of places in a pixel */

/* The place that pixel (i, j) of a row samples. */
static void look(const struct tr_image_view *view, int32_t i, int32_t j, int64_t *v, int64_t *u)
{
    *v = view->down + (int64_t)i * view->down_i + (int64_t)j * view->down_j;
    *u = view->right + (int64_t)i * view->right_i + (int64_t)j * view->right_j;
}

/* The pixel at or before a place; `part` is the rest, in units of a pixel. */
static int64_t pixel_of(int64_t place, float *part)
{
    const int64_t rest = ((place % ONE) + ONE) % ONE;
    *part = (float)rest / ONE;
    return (place - rest) / ONE;
}

static bool is_in_box(int32_t i, int32_t j, int32_t top, int32_t left, int32_t height, int32_t width)
{
    return i >= top && i < top + height && j >= left && j < left + width;
}

static float stored(const struct tr_op_augment_images *a, int64_t image, int64_t h, int64_t w, int32_t c)
{
    if (h < 0 || h >= a->in_h || w < 0 || w >= a->in_w) return 0;
    const int64_t at = ((image * a->in_h + h) * a->in_w + w) * a->channels + c;
    return a->numbers ? a->numbers[at] : (float)a->source[at];
}

static float interpolated(const struct tr_op_augment_images *a, int64_t image, int64_t v, int64_t u,
                          int32_t c)
{
    float fv, fu;
    const int64_t h = pixel_of(v, &fv), w = pixel_of(u, &fu);
    const float p00 = stored(a, image, h, w, c), p01 = stored(a, image, h, w + 1, c);
    const float p10 = stored(a, image, h + 1, w, c), p11 = stored(a, image, h + 1, w + 1, c);
    const float right = p01 - p00, above = fmaf(fu, right, p00);
    const float right_below = p11 - p10, below = fmaf(fu, right_below, p10);
    const float down = below - above;
    return fmaf(fv, down, above);
}

static float within(float x, float size)
{
    return x < 0 ? 0 : x > size ? size : x;
}

/* Channel c with brightness and contrast, above the least of the range. */
static float lit(const struct tr_op_augment_images *a, const struct tr_image_view *view, int64_t image,
                 int64_t v, int64_t u, int32_t c)
{
    const float size = a->most - a->least, middle = size / 2;
    const float x = interpolated(a, image, v, u, c) - a->least;
    const float bright = within(x * view->brightness, size);
    const float apart = bright - middle;
    return within(fmaf(view->contrast, apart, middle), size);
}

static float tinted(const struct tr_op_augment_images *a, const struct tr_image_view *view, int64_t image,
                    int64_t v, int64_t u, int32_t c)
{
    const float x = lit(a, view, image, v, u, c), size = a->most - a->least;
    if (a->channels != 3) return x + a->least;
    const float red = 0.299f * lit(a, view, image, v, u, 0);
    const float yellow = fmaf(0.587f, lit(a, view, image, v, u, 1), red);
    const float grey = fmaf(0.114f, lit(a, view, image, v, u, 2), yellow);
    const float apart = x - grey;
    return within(fmaf(view->saturation, apart, grey), size) + a->least;
}

static void augment_pixel(const struct tr_op_augment_images *a, const struct tr_image_view *view,
                          int64_t image, int32_t i, int32_t j, float *y)
{
    const bool erased = is_in_box(i, j, view->top, view->left, view->height, view->width);
    int64_t v, u;
    look(view, i, j, &v, &u);
    for (int32_t c = 0; c < a->channels; c++) {
        const float x = erased    ? a->erased
                        : a->tint ? tinted(a, view, image, v, u, c)
                                  : interpolated(a, image, v, u, c);
        y[c] = fmaf(x, a->scale[c % 4], a->shift[c % 4]);
    }
}

tr_status ref_augment_images(tr_device *device, const struct tr_op_augment_images *a)
{
    (void)device;
    float *y = a->y;
    for (int64_t r = 0; r < a->rows; r++)
        for (int32_t i = 0; i < a->out_h; i++)
            for (int32_t j = 0; j < a->out_w; j++, y += a->channels)
                augment_pixel(a, &a->view[r], a->index[r], i, j, y);
    return TR_OK;
}

tr_status ref_augment_labels(tr_device *device, const struct tr_op_augment_labels *a)
{
    (void)device;
    int32_t *y = a->y;
    for (int64_t r = 0; r < a->rows; r++) {
        const int32_t *labels = a->source + (a->index ? a->index[r] : r) * a->in_h * a->in_w;
        for (int32_t i = 0; i < a->out_h; i++) {
            for (int32_t j = 0; j < a->out_w; j++) {
                int64_t v, u;
                float part;
                look(&a->view[r], i, j, &v, &u);
                const int64_t h = pixel_of(v + ONE / 2, &part), w = pixel_of(u + ONE / 2, &part);
                const bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
                *y++ = inside ? labels[h * a->in_w + w] : -1;
            }
        }
    }
    return TR_OK;
}

static float mixed(float share, float x, float z)
{
    const float apart = x - z;
    return share == 1 ? x : fmaf(share, apart, z);
}

tr_status ref_mix_images(tr_device *device, const struct tr_op_mix_images *a)
{
    (void)device;
    int64_t at = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        const struct tr_image_mix *mix = &a->mix[r];
        for (int32_t i = 0; i < a->height; i++) {
            for (int32_t j = 0; j < a->width; j++) {
                const bool second = is_in_box(i, j, mix->top, mix->left, mix->height, mix->width);
                for (int32_t c = 0; c < a->channels; c++, at++)
                    a->y[at] = second ? a->z[at] : mixed(mix->share, a->x[at], a->z[at]);
            }
        }
    }
    return TR_OK;
}
