/* Operations: update rules, clipping, and holding updates back. */
#ifndef TR_DEVICE_OPS_UPDATE_H
#define TR_DEVICE_OPS_UPDATE_H

#include "device/ops/dense.h"

enum tr_rule {
    TR_RULE_SGD,      /* w = fma(-rate, g, w) */
    TR_RULE_MOMENTUM, /* m = flush(fma(beta1, m, g)); w = fma(-rate, nesterov ? fma(beta1, m, g) : m, w) */
    TR_RULE_ADAM,     /* m = flush(fma(beta1, m, (1-beta1) * g));
                         v = flush(fma(beta2, v, (1-beta2) * (g * g)));
                         w = fma(-adam_rate, m / fma(sqrt(v), adam_correction, epsilon), w) */
    TR_RULE_ADAMW,    /* w = fma(-(rate * decay), w, w), then as ADAM */
    TR_RULE_LION,     /* u = fma(beta1, m, (1-beta1) * g); m = flush(fma(beta2, m, (1-beta2) * g));
                         w = fma(-rate, fma(decay, w, 1 where u > 0, -1 where u < 0, else u), w) */
    TR_RULE_RMSPROP,  /* v = flush(fma(beta2, v, (1-beta2) * (g * g))); q = g / (sqrt(v) + epsilon);
                         m = flush(fma(beta1, m, q)); w = fma(-rate, m, w); without m: w = fma(-rate, q, w) */
    TR_RULE_ADAGRAD,  /* v = fma(g, g, v); w = fma(-rate, g / (sqrt(v) + epsilon), w) */
    TR_RULE_STATISTIC /* w = fma(beta1, g - w, w): running statistics; the steps below do not apply */
};

/* With vmax (AMSGrad), ADAM and ADAMW: after v, vmax = v <= vmax ? vmax : v, which replaces v in w. rate =
   scalars->rate * rate_factor, adam_rate = scalars->adam_rate * rate_factor. Per element: g = grad; if
   clip_norm: g = g * scalars->clip_scale; if clip_value > 0: g = min(max(g, -clip_value), clip_value) (NaN
   stays NaN); if l2 > 0: g = fma(l2, w, g); the rule; if ema: ema = fma(1 - ema_decay, w - ema, ema) with
   the new w and scalars->ema_decay. (1-beta) is computed in float32. scalars->nonfinite is set where a new
   w (also of a statistic) is not finite, and is never cleared. Nothing changes where scalars->held is not
   0. */
struct tr_op_update {
    int64_t count;
    enum tr_rule rule;
    bool nesterov, clip_norm;
    float rate_factor; /* of the parameter; 1: the step's rate */
    float beta1, beta2, epsilon, decay, l2, clip_value;
    const float *grad;
    float *w, *m,
        *v;      /* m: MOMENTUM, ADAM(W), LION, RMSPROP or NULL; v: ADAM(W), RMSPROP, ADAGRAD; else NULL */
    float *vmax; /* ADAM(W) or NULL */
    float *ema;  /* or NULL */
    struct tr_step_scalars *scalars;
};
#define TR_ABOUT_update(_)                                                                                   \
    _(SIZE, count)                                                                                           \
    _(READS, grad, a->count)                                                                                 \
    _(UPDATES, w, a->count)                                                                                  \
    _(UPDATES, m, a->count)                                                                                  \
    _(UPDATES, v, a->count)                                                                                  \
    _(UPDATES, vmax, a->count)                                                                               \
    _(UPDATES, ema, a->count)                                                                                \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, a->count *tr_rule_operations(a->rule))

/* A step along a direction, with a length that depends on the whole tensor. rate = (scalars ?
   scalars->rate : 1) * rate_factor; size = factor, or with squares, where both are > 0, factor *
   (sqrt(squares[0]) / sqrt(squares[1])). Per element: if decay > 0: w = fma(-(rate * decay), w, w); then w
   = fma(-(rate * size), direction, w); ema, nonfinite and held as in update; none of them without scalars. */
struct tr_op_advance {
    int64_t count;
    float rate_factor, factor, decay;
    const float *direction;
    const float *squares; /* [2] or NULL */
    float *w;
    float *ema;                      /* or NULL; NULL without scalars */
    struct tr_step_scalars *scalars; /* or NULL */
};
#define TR_ABOUT_advance(_)                                                                                  \
    _(SIZE, count)                                                                                           \
    _(READS, direction, a->count)                                                                            \
    _(READS, squares, 2)                                                                                     \
    _(UPDATES, w, a->count)                                                                                  \
    _(UPDATES, ema, a->count)                                                                                \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, 4 * a->count)

/* out[0] = sum of squares in blocks of 4096 elements: each block a lane chain of x * x, then the sum chain of
 * the blocks. */
struct tr_op_sum_squares {
    int64_t count;
    const float *x;
    float *out;
};
#define TR_ABOUT_sum_squares(_)                                                                              \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, out, 1)                                                                                        \
    _(OPERATIONS, 2 * a->count)

/* clip_scale = max_norm / norm if norm > max_norm, else 1 (NaN gives 1); norm = sqrt(sum chain of `squares`).
 */
struct tr_op_clip_scale {
    int64_t count;
    float max_norm;
    const float *squares; /* [count], one per parameter, in order */
    float *norm;          /* 1 */
    struct tr_step_scalars *scalars;
};
#define TR_ABOUT_clip_scale(_)                                                                               \
    _(SIZE, count)                                                                                           \
    _(READS, squares, a->count)                                                                              \
    _(WRITES, norm, 1)                                                                                       \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, a->count)

/* scalars->held = 1 if some x is NaN or infinite, or if scalars->nonfinite is set by an earlier step that
   is not judged yet; else it does not change. So a device can judge a step by itself. */
struct tr_op_hold {
    int64_t count;
    const float *x;
    struct tr_step_scalars *scalars;
};
#define TR_ABOUT_hold(_)                                                                                     \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, a->count)

/* ---- fusions (device/ops.h) ---- */

/* dense_backward_weights to a dw that is not stored, then update by it. */
struct tr_op_dense_backward_update {
    struct tr_op_dense_backward_weights weights; /* of one node; dw, db: NULL */
    struct tr_op_update update;                  /* count: in * out; grad: NULL */
};
#define TR_ABOUT_dense_backward_update(_)                                                                    \
    _(CUT, weights.cut)                                                                                      \
    _(SHAPE, weights.in)                                                                                     \
    _(SHAPE, weights.out)                                                                                    \
    _(READS, weights.x, rows * a->weights.in)                                                                \
    _(READS, weights.dy, rows * a->weights.out)                                                              \
    _(UPDATES, update.w, a->update.count)                                                                    \
    _(UPDATES, update.m, a->update.count)                                                                    \
    _(UPDATES, update.v, a->update.count)                                                                    \
    _(UPDATES, update.vmax, a->update.count)                                                                 \
    _(UPDATES, update.ema, a->update.count)                                                                  \
    _(UPDATES, update.scalars, 1)                                                                            \
    _(PART, weights, dense_backward_weights)                                                                 \
    _(PART, update, update)                                                                                  \
    _(OPERATIONS, 0)

#endif
