/* Images from bytes, with augmentation; gathered rows. */
#include "device/ref/ref.h"

#include "base/numbers/rng.h"

#include <math.h>
#include <string.h>

/* The part of the source image that a row shows. */
struct view {
    int32_t top, left;
    bool flip;
};

static struct view view_of(const struct tr_op_load_images *a, int64_t row)
{
    struct view view = {(a->in_h - a->out_h) / 2, (a->in_w - a->out_w) / 2, false};
    if (!a->random) return view;
    uint32_t words[4];
    tr_rng_key key = {a->key[0], a->key[1]};
    tr_rng_philox(key, a->first_example + (uint32_t)row, a->scalars->step, 0, 0, words);
    view.top = (int32_t)(words[0] % (uint32_t)(a->in_h + 2 * a->pad - a->out_h + 1)) - a->pad;
    view.left = (int32_t)(words[1] % (uint32_t)(a->in_w + 2 * a->pad - a->out_w + 1)) - a->pad;
    view.flip = a->flip && (words[2] & 1);
    return view;
}

/* The same of labels. */
static struct view view_of_labels(const struct tr_op_load_labels *a, int64_t row)
{
    const struct tr_op_load_images image = {
        .in_h = a->in_h,
        .in_w = a->in_w,
        .out_h = a->out_h,
        .out_w = a->out_w,
        .pad = a->pad,
        .random = a->random,
        .flip = a->flip,
        .key = {a->key[0], a->key[1]},
        .first_example = a->first_example,
        .scalars = a->scalars,
    };
    return view_of(&image, row);
}

static void load_pixel(const struct tr_op_load_images *a, const uint8_t *image, int32_t h, int32_t w,
                       float *y)
{
    bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
    const uint8_t *pixel = image + ((int64_t)h * a->in_w + w) * a->channels;
    for (int32_t c = 0; c < a->channels; c++)
        y[c] = fmaf(inside ? (float)pixel[c] : 0, a->scale[c % 4], a->shift[c % 4]);
}

tr_status ref_load_images(tr_device *device, const struct tr_op_load_images *a)
{
    (void)device;
    float *y = a->y;
    for (int64_t r = 0; r < a->rows; r++) {
        const uint8_t *image = a->source + a->index[r] * a->in_h * a->in_w * a->channels;
        struct view view = view_of(a, r);
        for (int32_t i = 0; i < a->out_h; i++) {
            for (int32_t j = 0; j < a->out_w; j++, y += a->channels) {
                int32_t column = view.flip ? a->out_w - 1 - j : j;
                load_pixel(a, image, i + view.top, column + view.left, y);
            }
        }
    }
    return TR_OK;
}

tr_status ref_load_labels(tr_device *device, const struct tr_op_load_labels *a)
{
    (void)device;
    int32_t *y = a->y;
    for (int64_t r = 0; r < a->rows; r++) {
        const int32_t *labels = a->source + (a->index ? a->index[r] : r) * a->in_h * a->in_w;
        struct view view = view_of_labels(a, r);
        for (int32_t i = 0; i < a->out_h; i++) {
            for (int32_t j = 0; j < a->out_w; j++) {
                int32_t h = i + view.top, w = (view.flip ? a->out_w - 1 - j : j) + view.left;
                bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
                *y++ = inside ? labels[(int64_t)h * a->in_w + w] : -1;
            }
        }
    }
    return TR_OK;
}

tr_status ref_gather_rows(tr_device *device, const struct tr_op_gather_rows *a)
{
    (void)device;
    for (int64_t r = 0; r < a->rows; r++) {
        int64_t from = a->start ? a->start[a->index[r]] : a->index[r] * a->stride;
        int64_t to = a->start ? a->offset[r] : r * a->width;
        int64_t count = a->start ? a->offset[r + 1] - a->offset[r] : a->width;
        memcpy(a->y + to, a->x + from, (size_t)count * sizeof *a->y);
    }
    return TR_OK;
}
