#include "device/winograd.h"

static bool suits_along(int32_t taps, int32_t in, int32_t out, int32_t before)
{
    const int32_t after = out + taps - 1 - before - in;
    return out >= TR_WINOGRAD_LEAST && before >= 0 && before < taps && after >= 0 && after < taps;
}

bool tr_winograd_suits(const struct tr_sliding_window *w)
{
    return (w->kernel_h == 3 || w->kernel_h == 5) && w->kernel_w == w->kernel_h && w->stride_h == 1 &&
           w->stride_w == 1 && w->dilation_h == 1 && w->dilation_w == 1 &&
           suits_along(w->kernel_h, w->in_h, w->out_h, w->pad_top) &&
           suits_along(w->kernel_w, w->in_w, w->out_w, w->pad_left);
}
