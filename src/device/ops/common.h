/* Parts that the arguments of several operations share. */
#ifndef TR_DEVICE_OPS_COMMON_H
#define TR_DEVICE_OPS_COMMON_H

#include <stdbool.h>
#include <stdint.h>

/* How the rows of a call divide into microbatches, and the tree nodes that these form. Host memory,
 * borrowed for the call.
 */
struct tr_cut {
    int32_t count;        /* microbatches in this call, >= 0 */
    const int64_t *row;   /* [count + 1] ascending; microbatch i has rows [row[i], row[i+1]); row[0] == 0 */
    int32_t nodes;        /* tree nodes of these microbatches */
    const int32_t *bound; /* [nodes + 1] strictly ascending from 0 to count; node j combines microbatches
                             [bound[j], bound[j+1]) of this call, as a tree over that many leaves */
    int64_t stride;       /* floats between the outputs of consecutive nodes */
};

/* Numbers that change from step to step. They lie in device memory, so that a recorded step can be
   replayed. */
struct tr_step_scalars {
    uint32_t step;         /* counts from 0 */
    float rate;            /* learning rate */
    float adam_rate;       /* rate / (1 - beta1^(step+1)); of lamb 1 / (1 - beta1^(step+1)) */
    float adam_correction; /* 1 / sqrt(1 - beta2^(step+1)) */
    float ema_decay;       /* decay of the moving average in this step */
    float clip_scale;      /* written by clip_scale; 1 where nothing is clipped */
    int32_t nonfinite;     /* set to 1 by update when a new parameter is NaN or infinite */
    int32_t held;          /* set to 1 by hold: the step's updates change nothing */
};

enum tr_activation {
    TR_ACT_NONE,
    TR_ACT_RELU,       /* 0 > x ? 0 : x */
    TR_ACT_LEAKY_RELU, /* 0 > x ? slope * x : x;  0 < slope <= 1 */
    TR_ACT_TANH,
    TR_ACT_SIGMOID,
    TR_ACT_GELU,       /* 0.5 * x * (1 + erf(x * 0x1.6a09e6p-1f)), as (0.5f * x) * (1 + e); not fusable, its
                          gradient needs x */
    TR_ACT_GELU_TANH,  /* (0.5f * x) * (1 + tanh(x * fma(x * x, 0x1.2444f2p-5f, 0x1.988454p-1f))), which is
                         near it; likewise */
    TR_ACT_SILU,       /* x * sigmoid(x); likewise */
    TR_ACT_HARD_SWISH, /* x * (t * 0x1.555556p-3f), t = x + 3, 0 where that is less, 6 where it is more;
                         likewise */
    TR_ACT_RELU6       /* 0 > x ? 0 : x > 6 ? 6 : x; likewise */
};
#define TR_ACTIVATIONS (TR_ACT_RELU6 + 1)

/* Whether the gradient is computed from x; otherwise it is from y. */
static inline bool tr_activation_reads_input(enum tr_activation activation)
{
    return activation >= TR_ACT_GELU;
}

/* Window geometry of convolutions and pools. Output pixel (oh, ow) reads input pixels
   (oh * stride_h + kh * dilation_h - pad_top, ow * stride_w + kw * dilation_w - pad_left); taps outside the
   image do not exist. */
struct tr_sliding_window {
    int32_t in_h, in_w, out_h, out_w;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
};

#endif
