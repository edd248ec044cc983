/* Units of pools. */
#include "dispute/units/numbers.h"

/* Taps of an output pixel that lie inside the image. */
static int64_t inside(const struct tr_sliding_window *window, int64_t output)
{
    int64_t count = 0;
    for (int64_t tap = 0; tap < taps_of(window); tap++) count += pixel_of(window, output, tap) >= 0;
    return count;
}

static struct num share_of(const struct tr_sliding_window *window, bool count_border, int64_t output)
{
    return constant(1 / (float)(count_border ? taps_of(window) : inside(window, output)));
}

UNIT(pool_forward)
{
    const int64_t pixels = pixels_out(&a->window), p = to->at / a->channels, c = to->at % a->channels;
    const float *image = a->x + p / pixels * pixels_in(&a->window) * a->channels;
    struct num sum = constant(0);
    struct greatest greatest = {.any = false};
    for (int64_t tap = 0; tap < taps_of(&a->window); tap++) {
        const int64_t pixel = pixel_of(&a->window, p % pixels, tap);
        if (pixel < 0) continue;
        const struct num x = in(image + pixel * a->channels + c);
        if (a->kind == TR_POOL_MAX)
            greatest_add(&greatest, x, tap);
        else
            sum = add(sum, x);
    }
    if (a->kind == TR_POOL_MAX) return is(to, "taken") ? greatest.at : greatest.value;
    return mul(sum, share_of(&a->window, a->count_border, p % pixels));
}

UNIT(pool_backward)
{
    const struct tr_sliding_window *window = &a->window;
    const int64_t pixels = pixels_in(window), p = to->at / a->channels, c = to->at % a->channels;
    const int64_t first = p / pixels * pixels_out(window);
    struct num sum = constant(0);
    for (int64_t output = 0; output < pixels_out(window); output++) {
        const int64_t tap = tap_of(window, output, p % pixels), at = (first + output) * a->channels + c;
        if (tap < 0) continue;
        if (a->kind == TR_POOL_AVERAGE) {
            sum = add(sum, mul(in(a->dy + at), share_of(window, a->count_border, output)));
        } else if (whole_byte(a->taken + at) == tap) {
            const struct num zero = constant(0), dy = in(a->dy + at);
            sum = add(sum, a->relu_output ? if_less(zero, in(a->relu_output + at), dy, zero) : dy);
        }
    }
    return sum;
}

static struct unit_example rows_of(const int32_t *offset, int64_t spatial, int64_t example)
{
    if (!offset) return (struct unit_example){example, example * spatial, (example + 1) * spatial};
    return (struct unit_example){example, whole(offset + example), whole(offset + example + 1)};
}

UNIT(pool_rows_forward)
{
    const struct unit_example rows = rows_of(a->offset, a->spatial, to->at / a->width);
    struct num sum = constant(0);
    struct greatest greatest = {sum, sum, false};
    if (rows.begin == rows.end) return sum;
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const struct num x = in(a->x + r * a->width + to->at % a->width);
        if (a->kind == TR_POOL_MAX)
            greatest_add(&greatest, x, r - rows.begin);
        else
            sum = add(sum, x);
    }
    if (a->kind == TR_POOL_MAX) return is(to, "taken") ? greatest.at : greatest.value;
    return mul(sum, constant(1 / (float)(rows.end - rows.begin)));
}

UNIT(pool_rows_backward)
{
    const int64_t r = to->at / a->width, k = to->at % a->width;
    const struct unit_example rows =
        a->offset ? example_of(a->offset, a->examples, r) : rows_of(NULL, a->spatial, r / a->spatial);
    const int64_t at = rows.number * a->width + k;
    if (a->kind == TR_POOL_AVERAGE) return mul(in(a->dy + at), constant(1 / (float)(rows.end - rows.begin)));
    return whole(a->taken + at) == r - rows.begin ? in(a->dy + at) : constant(0);
}

const struct unit_entry unit_pool[] = {UNIT_ENTRY(pool_forward) UNIT_ENTRY(pool_backward) UNIT_ENTRY(
    pool_rows_forward) UNIT_ENTRY(pool_rows_backward) UNIT_END};
