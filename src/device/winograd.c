#include "device/winograd.h"

#define KERNEL 3

static bool suits_along(int32_t in, int32_t out, int32_t before)
{
    const int32_t after = out + KERNEL - 1 - before - in;
    return out >= TR_WINOGRAD_LEAST && before >= 0 && before < KERNEL && after >= 0 && after < KERNEL;
}

bool tr_winograd_suits(const struct tr_sliding_window *w)
{
    return w->kernel_h == KERNEL && w->kernel_w == KERNEL && w->stride_h == 1 && w->stride_w == 1 &&
           w->dilation_h == 1 && w->dilation_w == 1 && suits_along(w->in_h, w->out_h, w->pad_top) &&
           suits_along(w->in_w, w->out_w, w->pad_left);
}
