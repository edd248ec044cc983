#include "device/cpu/winograd/winograd.h"

#include <string.h>

int64_t winograd_strip_floats(const struct tr_sliding_window *window, int64_t channels)
{
    return TR_WINOGRAD_POINTS * (window->out_w + window->kernel_w - 1) * channels;
}

/* Copies those of the pixels [begin, end) of a line that tiles read. */
static void copy_pixels(const struct tr_sliding_window *window, int64_t channels, const float *line,
                        int32_t begin, int32_t end, float *to)
{
    const int32_t left = window->pad_left, right = left + window->in_w;
    const int32_t first = begin > left ? begin : left < end ? left : end;
    const int32_t last = end < right ? end : right > first ? right : first;
    memset(to + begin * channels, 0, (size_t)((first - begin) * channels) * sizeof *to);
    memcpy(to + first * channels, line + (first - left) * channels,
           (size_t)((last - first) * channels) * sizeof *to);
    memset(to + last * channels, 0, (size_t)((end - last) * channels) * sizeof *to);
}

void winograd_strip(const struct tr_sliding_window *window, int64_t channels, const float *image,
                    struct tr_winograd_tile y, float *border, struct winograd_strip *strip)
{
    const int32_t width = window->out_w + window->kernel_w - 1, left = window->pad_left;
    const int32_t h = y.first - window->pad_top, h_end = h + y.points;
    const int64_t line = (int64_t)window->in_w * channels;
    const bool inside = h >= 0 && h_end <= window->in_h;
    *strip = (struct winograd_strip){.border = border,
                                     .next = image + h_end * line - left * channels,
                                     .line = line,
                                     .border_line = width * channels,
                                     .inside = left,
                                     .inside_end = inside ? left + window->in_w : left};
    if (inside) strip->image = image + h * line - left * channels;
    if (inside && left == 0 && width <= window->in_w) return;
    /* Pixels that no tile at an end of the line reads are not copied. */
    int32_t near = width, far = width;
    if (inside && width > 3 * TR_WINOGRAD_POINTS) {
        near = left > 0 ? TR_WINOGRAD_POINTS : 0;
        far = width - TR_WINOGRAD_POINTS;
    }
    for (int32_t i = h; i < h_end; i++, border += width * channels) {
        if (i < 0 || i >= window->in_h) {
            memset(border, 0, (size_t)(width * channels) * sizeof *border);
            continue;
        }
        copy_pixels(window, channels, image + i * line, 0, near, border);
        if (far > near) copy_pixels(window, channels, image + i * line, far, width, border);
    }
}
