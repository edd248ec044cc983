#include "device/ref/loops/window.h"

#include "base/alloc.h"

static bool inside(int32_t position, int32_t size)
{
    return position >= 0 && position < size;
}

/* Appends the taps of output pixel (oh, ow); returns their number. */
static int64_t list_pixel(const struct tr_sliding_window *w, int32_t oh, int32_t ow, struct ref_tap *taps)
{
    int64_t count = 0;
    for (int32_t kh = 0; kh < w->kernel_h; kh++) {
        int32_t ih = oh * w->stride_h + kh * w->dilation_h - w->pad_top;
        if (!inside(ih, w->in_h)) continue;
        for (int32_t kw = 0; kw < w->kernel_w; kw++) {
            int32_t iw = ow * w->stride_w + kw * w->dilation_w - w->pad_left;
            if (!inside(iw, w->in_w)) continue;
            taps[count].tap = kh * w->kernel_w + kw;
            taps[count++].pixel = (int64_t)ih * w->in_w + iw;
        }
    }
    return count;
}

tr_status ref_taps_list(const struct tr_sliding_window *window, struct ref_taps *out)
{
    int64_t pixels = (int64_t)window->out_h * window->out_w;
    int64_t most = pixels * window->kernel_h * window->kernel_w;
    out->start = tr_alloc((size_t)pixels + 1, sizeof *out->start);
    out->taps = tr_alloc((size_t)most, sizeof *out->taps);
    if (!out->start || !out->taps) {
        ref_taps_release(out);
        return TR_ENOMEM;
    }
    int64_t *start = out->start;
    *start = 0;
    for (int32_t oh = 0; oh < window->out_h; oh++)
        for (int32_t ow = 0; ow < window->out_w; ow++, start++)
            start[1] = start[0] + list_pixel(window, oh, ow, out->taps + start[0]);
    return TR_OK;
}

void ref_taps_release(struct ref_taps *taps)
{
    tr_free(taps->start);
    tr_free(taps->taps);
}
