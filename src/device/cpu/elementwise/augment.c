/* Images with a view for each row of the batch, which the threads divide. Bytes in views that only shift
 * or mirror need no interpolation: the fraction of a pixel is 0, and interpolation would give the byte
 * itself.
 */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

#include <math.h>

/* Of a value, on one thread. */
#define NANOSECONDS 4.0

#define CHANNELS_AT_ONCE 4

/* An image and a sampling point in it. */
struct sight {
    const uint8_t *bytes;
    const float *numbers;
    int64_t at[4]; /* of the four pixels around it; -1: outside */
    float fv, fu;
};

static int64_t pixel_at(const struct tr_op_augment_images *a, int64_t h, int64_t w)
{
    return h < 0 || h >= a->in_h || w < 0 || w >= a->in_w ? -1 : (h * a->in_w + w) * a->channels;
}

static void look(const struct tr_op_augment_images *a, int64_t v, int64_t u, struct sight *sight)
{
    const int64_t h = v >> 16, w = u >> 16;
    sight->fv = (float)(v & 0xffff) * 0x1p-16f;
    sight->fu = (float)(u & 0xffff) * 0x1p-16f;
    for (int i = 0; i < 4; i++) sight->at[i] = pixel_at(a, h + i / 2, w + i % 2);
}

static float value(const struct sight *sight, int i, int64_t c)
{
    if (sight->at[i] < 0) return 0;
    const int64_t at = sight->at[i] + c;
    return sight->numbers ? sight->numbers[at] : (float)sight->bytes[at];
}

static float interpolated(const struct sight *sight, int64_t c)
{
    const float p00 = value(sight, 0, c), p10 = value(sight, 2, c);
    const float above = fmaf(sight->fu, value(sight, 1, c) - p00, p00);
    const float below = fmaf(sight->fu, value(sight, 3, c) - p10, p10);
    return fmaf(sight->fv, below - above, above);
}

static float within(float x, float size)
{
    return x < 0 ? 0 : x > size ? size : x;
}

static void tint(const struct tr_op_augment_images *a, const struct tr_image_view *view, int64_t channels,
                 float *x)
{
    const float size = a->most - a->least, middle = size / 2;
    for (int64_t c = 0; c < channels; c++) {
        const float bright = within((x[c] - a->least) * view->brightness, size);
        x[c] = within(fmaf(view->contrast, bright - middle, middle), size);
    }
    if (a->channels == 3) {
        const float grey = fmaf(0.114f, x[2], fmaf(0.587f, x[1], 0.299f * x[0]));
        for (int c = 0; c < 3; c++) x[c] = within(fmaf(view->saturation, x[c] - grey, grey), size);
    }
    for (int64_t c = 0; c < channels; c++) x[c] += a->least;
}

/* Whether the view's rows and columns are those of the image, in order or mirrored. */
static bool is_straight(const struct tr_op_augment_images *a, const struct tr_image_view *view)
{
    return a->source && ((view->down | view->right | view->down_i | view->right_j) & 0xffff) == 0 &&
           view->down_j == 0 && view->right_i == 0;
}

static void augment_pixel(const struct tr_op_augment_images *a, const struct tr_image_view *view,
                          const struct sight *sight, bool straight, float *y)
{
    float x[CHANNELS_AT_ONCE];
    for (int64_t c = 0; c < a->channels; c += CHANNELS_AT_ONCE) {
        const int64_t count = a->channels - c < CHANNELS_AT_ONCE ? a->channels - c : CHANNELS_AT_ONCE;
        for (int64_t k = 0; k < count; k++)
            x[k] = straight ? value(sight, 0, c + k) : interpolated(sight, c + k);
        if (a->tint) tint(a, view, count, x);
        for (int64_t k = 0; k < count; k++) y[c + k] = fmaf(x[k], a->scale[k], a->shift[k]);
    }
}

static void erase(const struct tr_op_augment_images *a, float *y)
{
    for (int64_t c = 0; c < a->channels; c++) y[c] = fmaf(a->erased, a->scale[c % 4], a->shift[c % 4]);
}

static void augment_image(const struct tr_op_augment_images *a, int64_t row)
{
    const struct tr_image_view *view = &a->view[row];
    const int64_t image = a->index[row] * a->in_h * a->in_w * a->channels;
    struct sight sight = {.bytes = a->source ? a->source + image : NULL,
                          .numbers = a->numbers ? a->numbers + image : NULL};
    const bool straight = is_straight(a, view);
    float *y = a->y + row * a->out_h * a->out_w * a->channels;
    for (int32_t i = 0; i < a->out_h; i++) {
        const bool in_rows = i >= view->top && i < view->top + view->height;
        int64_t v = view->down + (int64_t)i * view->down_i, u = view->right + (int64_t)i * view->right_i;
        for (int32_t j = 0; j < a->out_w; j++, y += a->channels, v += view->down_j, u += view->right_j) {
            if (in_rows && j >= view->left && j < view->left + view->width) {
                erase(a, y);
                continue;
            }
            if (straight)
                sight.at[0] = pixel_at(a, v >> 16, u >> 16);
            else
                look(a, v, u, &sight);
            augment_pixel(a, view, &sight, straight, y);
        }
    }
}

static void augment_part(void *arguments, int member, int size)
{
    const struct tr_op_augment_images *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++) augment_image(a, r);
}

tr_status CPU_KERNEL(augment_images)(tr_device *device, const struct tr_op_augment_images *a)
{
    struct tr_op_augment_images copy = *a;
    const double values = (double)a->rows * a->out_h * a->out_w * a->channels;
    cpu_run(cpu_device_of(device), values * NANOSECONDS, augment_part, &copy);
    return TR_OK;
}
