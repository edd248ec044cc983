/* Operations: softmax and normalization. */
#ifndef TR_DEVICE_OPS_NORM_H
#define TR_DEVICE_OPS_NORM_H

#include "device/ops/common.h"

/* y = softmax of each row: m = max (as in pooling), e = exp(x - m), y = e / lane sum(e). y may be x. */
struct tr_op_softmax_forward {
    int64_t rows, width;
    const float *x;
    float *y;
};
#define TR_ABOUT_softmax_forward(_)                                                                          \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, 4 * rows * a->width)

/* dx = y * (dy - s), s = lane chain of y * dy. dx may be dy. */
struct tr_op_softmax_backward {
    int64_t rows, width;
    const float *y;
    const float *dy;
    float *dx;
};
#define TR_ABOUT_softmax_backward(_)                                                                         \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, y, rows * a->width)                                                                             \
    _(READS, dy, rows * a->width)                                                                            \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, 4 * rows * a->width)

/* Per row: mean = lane sum(x) / width; d = x - mean; var = lane chain(d * d) / width; inv = 1 / sqrt(var +
   epsilon); y = fma(d * inv, gamma, beta). Keeps mean and inv per row. */
struct tr_op_layer_norm_forward {
    int64_t rows, width;
    float epsilon;
    const float *x, *gamma, *beta; /* gamma, beta [width] */
    float *y;
    float *mean, *inv; /* [rows] */
};
#define TR_ABOUT_layer_norm_forward(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(READS, beta, a->width)                                                                                 \
    _(WRITES, y, rows * a->width)                                                                            \
    _(KEEPS, mean, rows)                                                                                     \
    _(KEEPS, inv, rows)                                                                                      \
    _(OPERATIONS, 8 * rows * a->width)

/* xhat = (x - mean) * inv; g = dy * gamma; a = lane sum(g) / width; b = lane chain(g * xhat) / width;
   dx = inv * ((g - a) - xhat * b), the last difference as fma(-xhat, b, g - a).
   Per node: dgamma = tree of chains over rows of dy * xhat, dbeta of sum chains of dy. */
struct tr_op_layer_norm_backward {
    int64_t width;
    const float *x, *gamma, *mean, *inv, *dy;
    float *dx;             /* or NULL */
    float *dgamma, *dbeta; /* [width] per node */
    struct tr_cut cut;
};
#define TR_ABOUT_layer_norm_backward(_)                                                                      \
    _(CUT, cut)                                                                                              \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(READS, mean, rows)                                                                                     \
    _(READS, inv, rows)                                                                                      \
    _(READS, dy, rows * a->width)                                                                            \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(NODES, dgamma, a->width)                                                                               \
    _(NODES, dbeta, a->width)                                                                                \
    _(OPERATIONS, (a->dx ? 14 : 5) * rows * a->width)

/* Per row: inv = 1 / sqrt(lane chain(x * x) / width + epsilon); y = (x * inv) * gamma. Keeps inv per row. */
struct tr_op_rms_norm_forward {
    int64_t rows, width;
    float epsilon;
    const float *x, *gamma; /* gamma [width] */
    float *y;
    float *inv; /* [rows] */
};
#define TR_ABOUT_rms_norm_forward(_)                                                                         \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(WRITES, y, rows * a->width)                                                                            \
    _(KEEPS, inv, rows)                                                                                      \
    _(OPERATIONS, 4 * rows * a->width)

/* xhat = x * inv; g = dy * gamma; b = lane chain(g * xhat) / width; dx = inv * fma(-xhat, b, g).
   Per node: dgamma = tree of chains over rows of dy * xhat. */
struct tr_op_rms_norm_backward {
    int64_t width;
    const float *x, *gamma, *inv, *dy;
    float *dx;     /* or NULL */
    float *dgamma; /* [width] per node */
    struct tr_cut cut;
};
#define TR_ABOUT_rms_norm_backward(_)                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(READS, inv, rows)                                                                                      \
    _(READS, dy, rows * a->width)                                                                            \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(NODES, dgamma, a->width)                                                                               \
    _(OPERATIONS, (a->dx ? 10 : 3) * rows * a->width)

/* Group normalization (Wu, He 2018). Channels form `groups` groups of equal size and consecutive channels.
   Per row and group, over the n values of its channels at all positions: s[c] = sum chain over positions
   of x, mean = sum chain over the channels of the group of s[c], / n; d = x - mean; q[c] = chain over
   positions of d * d, var = sum chain over channels of q[c], / n; inv = 1 / sqrt(var + epsilon); y = fma(d
   * inv, gamma, beta). Keeps mean and inv per row and group. */
struct tr_op_group_norm_forward {
    int64_t rows, spatial, channels, groups; /* groups divides channels */
    float epsilon;
    const float *x, *gamma, *beta; /* x [rows][spatial][channels]; gamma, beta [channels] */
    float *y;
    float *mean, *inv; /* [rows][groups] */
};
#define TR_ABOUT_group_norm_forward(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, groups)                                                                                         \
    _(READS, x, rows * a->spatial * a->channels)                                                             \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, beta, a->channels)                                                                              \
    _(WRITES, y, rows * a->spatial * a->channels)                                                            \
    _(KEEPS, mean, rows * a->groups)                                                                         \
    _(KEEPS, inv, rows * a->groups)                                                                          \
    _(OPERATIONS, 8 * rows * a->spatial * a->channels)

/* xhat = (x - mean) * inv. Per row and channel: s1 = sum chain over positions of dy, s2 = chain over
   positions of dy * xhat. Per row and group: a = chain over its channels of gamma * s1, / n; b = chain over
   its channels of gamma * s2, / n; dx = inv * fma(-xhat, b, dy * gamma - a). Per node: dgamma = tree over
   microbatches of sum chains over rows of s2, dbeta of s1. */
struct tr_op_group_norm_backward {
    int64_t spatial, channels, groups;
    const float *x, *gamma, *mean, *inv, *dy;
    float *dx;             /* or NULL */
    float *dgamma, *dbeta; /* [channels] per node */
    struct tr_cut cut;
};
#define TR_ABOUT_group_norm_backward(_)                                                                      \
    _(CUT, cut)                                                                                              \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, groups)                                                                                         \
    _(READS, x, rows * a->spatial * a->channels)                                                             \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, mean, rows * a->groups)                                                                         \
    _(READS, inv, rows * a->groups)                                                                          \
    _(READS, dy, rows * a->spatial * a->channels)                                                            \
    _(WRITES, dx, rows * a->spatial * a->channels)                                                           \
    _(NODES, dgamma, a->channels)                                                                            \
    _(NODES, dbeta, a->channels)                                                                             \
    _(OPERATIONS, (a->dx ? 14 : 5) * rows * a->spatial * a->channels)

/* Training. Statistics per microbatch and channel over its n = (rows of microbatch) * spatial values, rows
   ascending: mean = sum chain / n; d = x - mean; var = chain(d * d) / n; inv = 1 / sqrt(var + epsilon); y =
   fma(d * inv, gamma, beta). Per node: batch_mean, batch_var = tree over microbatches of share * mean, share
   * (var * (n / (n - 1))), share = (float)(rows of the microbatch) / (float)global_rows; n / (n - 1) is 1
   when n == 1. A microbatch without rows has mean, inv and leaves +0. */
struct tr_op_batch_norm_forward {
    int64_t spatial, channels, global_rows;
    float epsilon;
    const float *x, *gamma, *beta; /* x [rows][spatial][channels] */
    float *y;
    float *mean, *inv;             /* [count of microbatches][channels] */
    float *batch_mean, *batch_var; /* [channels] per node */
    struct tr_cut cut;
};
#define TR_ABOUT_batch_norm_forward(_)                                                                       \
    _(CUT, cut)                                                                                              \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->spatial * a->channels)                                                             \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, beta, a->channels)                                                                              \
    _(WRITES, y, rows * a->spatial * a->channels)                                                            \
    _(KEEPS, mean, a->cut.count * a->channels)                                                               \
    _(KEEPS, inv, a->cut.count * a->channels)                                                                \
    _(NODES, batch_mean, a->channels)                                                                        \
    _(NODES, batch_var, a->channels)                                                                         \
    _(OPERATIONS, 8 * rows * a->spatial * a->channels)

/* xhat = (x - mean) * inv. Per microbatch: s1 = sum chain(dy), s2 = chain(dy * xhat) over rows; a = s1 / n; b
   = s2 / n; dx = (gamma * inv) * fma(-xhat, b, dy - a). Per node: dgamma = tree of s2, dbeta = tree of s1. */
struct tr_op_batch_norm_backward {
    int64_t spatial, channels;
    const float *x, *gamma, *mean, *inv, *dy;
    float *dx; /* or NULL */
    float *dgamma, *dbeta;
    struct tr_cut cut;
};
#define TR_ABOUT_batch_norm_backward(_)                                                                      \
    _(CUT, cut)                                                                                              \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->spatial * a->channels)                                                             \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, mean, a->cut.count * a->channels)                                                               \
    _(READS, inv, a->cut.count * a->channels)                                                                \
    _(READS, dy, rows * a->spatial * a->channels)                                                            \
    _(WRITES, dx, rows * a->spatial * a->channels)                                                           \
    _(NODES, dgamma, a->channels)                                                                            \
    _(NODES, dbeta, a->channels)                                                                             \
    _(OPERATIONS, (a->dx ? 10 : 5) * rows * a->spatial * a->channels)

/* Evaluation: y = fma((x - mean) * inv, gamma, beta), inv = 1 / sqrt(var + epsilon), with running statistics.
 */
struct tr_op_batch_norm_infer {
    int64_t rows, channels; /* rows count every spatial position */
    float epsilon;
    const float *x, *gamma, *beta, *mean, *var;
    float *y;
};
#define TR_ABOUT_batch_norm_infer(_)                                                                         \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->channels)                                                                          \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, beta, a->channels)                                                                              \
    _(READS, mean, a->channels)                                                                              \
    _(READS, var, a->channels)                                                                               \
    _(WRITES, y, rows * a->channels)                                                                         \
    _(OPERATIONS, 4 * rows * a->channels)

/* ---- fusions (device/ops.h) ---- */

/* batch_norm_forward; if `addend`, add of y and addend; activation_forward. Only the last y is stored. */
struct tr_op_batch_norm_activation_forward {
    struct tr_op_batch_norm_forward norm;
    const float *addend;           /* shape of y, or NULL */
    enum tr_activation activation; /* NONE, RELU, LEAKY_RELU */
    float slope;
};
#define TR_ABOUT_batch_norm_activation_forward(_)                                                            \
    _(CUT, norm.cut)                                                                                         \
    _(SHAPE, norm.spatial)                                                                                   \
    _(SHAPE, norm.channels)                                                                                  \
    _(READS, norm.x, rows * a->norm.spatial * a->norm.channels)                                              \
    _(READS, norm.gamma, a->norm.channels)                                                                   \
    _(READS, norm.beta, a->norm.channels)                                                                    \
    _(READS, addend, rows * a->norm.spatial * a->norm.channels)                                              \
    _(WRITES, norm.y, rows * a->norm.spatial * a->norm.channels)                                             \
    _(KEEPS, norm.mean, a->norm.cut.count * a->norm.channels)                                                \
    _(KEEPS, norm.inv, a->norm.cut.count * a->norm.channels)                                                 \
    _(NODES, norm.batch_mean, a->norm.channels)                                                              \
    _(NODES, norm.batch_var, a->norm.channels)                                                               \
    _(PART, norm, batch_norm_forward)                                                                        \
    _(OPERATIONS, rows * a->norm.spatial * a->norm.channels * (a->addend ? 2 : 1))

/* If `more`, add of norm.dy and more; activation_backward with `y`; if `daddend`, a copy of the result to it;
   batch_norm_backward of the result. norm.dx may be norm.dy. */
struct tr_op_batch_norm_activation_backward {
    struct tr_op_batch_norm_backward norm;
    const float *more; /* shape of dy, or NULL: a second gradient of the same output */
    const float *y;    /* the forward's; not read with NONE */
    const float *beta; /* NULL, or that of the forward pass if it had no addend: y is then computed from x */
    float *daddend;    /* shape of dy, or NULL */
    enum tr_activation activation; /* NONE, RELU, LEAKY_RELU */
    float slope;
};
#define TR_ABOUT_batch_norm_activation_backward(_)                                                           \
    _(CUT, norm.cut)                                                                                         \
    _(SHAPE, norm.spatial)                                                                                   \
    _(SHAPE, norm.channels)                                                                                  \
    _(READS, norm.x, rows * a->norm.spatial * a->norm.channels)                                              \
    _(READS, norm.gamma, a->norm.channels)                                                                   \
    _(READS, norm.mean, a->norm.cut.count * a->norm.channels)                                                \
    _(READS, norm.inv, a->norm.cut.count * a->norm.channels)                                                 \
    _(READS, norm.dy, rows * a->norm.spatial * a->norm.channels)                                             \
    _(READS, more, rows * a->norm.spatial * a->norm.channels)                                                \
    _(READS, y, rows * a->norm.spatial * a->norm.channels)                                                   \
    _(READS, beta, a->norm.channels)                                                                         \
    _(WRITES, daddend, rows * a->norm.spatial * a->norm.channels)                                            \
    _(WRITES, norm.dx, rows * a->norm.spatial * a->norm.channels)                                            \
    _(NODES, norm.dgamma, a->norm.channels)                                                                  \
    _(NODES, norm.dbeta, a->norm.channels)                                                                   \
    _(PART, norm, batch_norm_backward)                                                                       \
    _(OPERATIONS, rows * a->norm.spatial * a->norm.channels * (a->more ? 2 : 1))

#endif
