/* The input pixels that an output pixel of a convolution or pool reads. */
#ifndef TR_DEVICE_REF_WINDOW_H
#define TR_DEVICE_REF_WINDOW_H

#include "device/ops.h"
#include "trireme/status.h"

/* One product of a window that lies inside the image. */
struct ref_tap {
    int32_t tap;   /* kh * kernel_w + kw */
    int64_t pixel; /* ih * in_w + iw */
};

/* The taps of every output pixel of an image: those of pixel p = oh * out_w + ow are taps[start[p]] up to
   taps[start[p + 1] - 1], (kh, kw) ascending. Taps outside the image are not listed. */
struct ref_taps {
    int64_t *start; /* [out_h * out_w + 1] */
    struct ref_tap *taps;
};

/* Lists the taps of a window. TR_ENOMEM leaves nothing behind. Release with ref_taps_release(). Any thread.
 */
tr_status ref_taps_list(const struct tr_sliding_window *window, struct ref_taps *out);
void ref_taps_release(struct ref_taps *taps);

#endif
