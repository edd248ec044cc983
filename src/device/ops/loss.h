/* Operations: losses, and sums of them. */
#ifndef TR_DEVICE_OPS_LOSS_H
#define TR_DEVICE_OPS_LOSS_H

#include "device/ops/common.h"

/* Per row: m = max; s = lane sum(exp(x - m)); logz = log(s). With smoothing e: off = e / classes, on = (1
   - e) + off. loss = logz - (x[label] - m) when e == 0, else fma chain from +0 over classes of t[k] *
   (logz - (x[k] - m)), t = k == label ? on : off. dx = flush(exp(x - m) / s - t) * scale (t = 1 or 0 when
   e == 0). correct = 1 if the maximum is at label (as in pooling: the first of equal values, NaN above
   all). */
struct tr_op_softmax_cross_entropy {
    int64_t rows, classes;
    float smoothing, scale;
    const float *x;
    const int32_t *label; /* [rows], in range; negative: no label, and the results of the row are +0 */
    float *loss;          /* [rows] */
    float *correct;       /* [rows], 0 or 1 */
    float *dx;            /* [rows][classes] or NULL */
};
#define TR_ABOUT_softmax_cross_entropy(_)                                                                    \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, classes)                                                                                        \
    _(READS, x, rows * a->classes)                                                                           \
    _(INDEX, label, rows)                                                                                    \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * a->classes)                                                                         \
    _(OPERATIONS, (a->dx ? 7 : 4) * rows * a->classes)

/* The target is a row of probabilities. Per row: m, s, logz as in softmax_cross_entropy; p[k] = target[k],
   with smoothing e: p[k] = fma(1 - e, target[k], e / classes); all = lane sum(p). loss = lane chain(p[k] *
   (logz - (x[k] - m))); dx = flush(fma(exp(x - m) / s, all, -p)) * scale. correct = 1 if the greatest
   target and the greatest x are at the same place (each the first of equal values, NaN above all). */
struct tr_op_soft_cross_entropy {
    int64_t rows, classes;
    float smoothing, scale;
    const float *x, *target; /* [rows][classes] */
    float *loss, *correct;   /* [rows] */
    float *dx;               /* [rows][classes] or NULL */
};
#define TR_ABOUT_soft_cross_entropy(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, classes)                                                                                        \
    _(READS, x, rows * a->classes)                                                                           \
    _(READS, target, rows * a->classes)                                                                      \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * a->classes)                                                                         \
    _(OPERATIONS, (a->dx ? 9 : 6) * rows * a->classes)

/* Per row: d = x - target; loss = lane chain(d * d) * (1 / width); dx = (d * (2 / width)) * scale. */
struct tr_op_mean_squared_error {
    int64_t rows, width;
    float scale;
    const float *x, *target;
    float *loss; /* [rows] */
    float *dx;   /* [rows][width] or NULL */
};
#define TR_ABOUT_mean_squared_error(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 5 : 3) * rows * a->width)

/* Per output k of a row, s = sigmoid(x), z = max(-x, 0) + log(1 + exp(-|x|)), max(a, 0) = a > 0 ? a : 0 (NaN
   stays NaN). Without `weight`: term = fma(1 - t, x, z), slope = s - t; with it q = weight[k] * t,
   u = (q + 1) - t, term = fma(1 - t, x, u * z), slope = fma(u, s, -q). loss = lane sum(term) * (1 / width);
   dx = (flush(slope) * (1 / width)) * scale. correct = (outputs where (x > 0) == (t > 0.5)) / width, both as
   float32. */
struct tr_op_binary_cross_entropy {
    int64_t rows, width;
    float scale;
    const float *x, *target; /* [rows][width] */
    const float *weight;     /* [width] or NULL */
    float *loss, *correct;   /* [rows] */
    float *dx;               /* [rows][width] or NULL */
};
#define TR_ABOUT_binary_cross_entropy(_)                                                                     \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(READS, weight, a->width)                                                                               \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 13 : 9) * rows * a->width)

/* Per output, d = x - target, a = |d|. delta > 0 (Huber): a <= delta: term = (0.5 * d) * d, slope = d; else
   term = delta * (a - 0.5 * delta), slope = delta * (1 where d > 0, -1 where d < 0, else d). delta == 0
   (absolute error): term = a; slope = 1 where d > 0, -1 where d < 0, else d. loss = lane sum(term) * (1 /
   width); dx = (slope * (1 / width)) * scale. */
struct tr_op_huber_error {
    int64_t rows, width;
    float delta, scale;
    const float *x, *target;
    float *loss; /* [rows] */
    float *dx;   /* [rows][width] or NULL */
};
#define TR_ABOUT_huber_error(_)                                                                              \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 7 : 5) * rows * a->width)

/* Focal loss of Lin and others 2017, over classes that exclude each other. Per row: m = max; e[k] = exp(x[k]
   - m); s = lane sum(e); q = lane sum(e, but +0 at the label) / s; n = log(s) - (x[label] - m); w = q == 0 ?
   0 : exp(gamma * log(q)). loss = w * n. p = e[label] / s; f = fma((gamma * p) * n, q == 0 ? 0 : w / q, w);
   dx = flush(f * (k == label ? -q : e[k] / s)) * scale. correct as in softmax_cross_entropy. */
struct tr_op_focal_cross_entropy {
    int64_t rows, classes;
    float gamma, scale;
    const float *x;
    const int32_t *label; /* [rows], in range; negative: no label, and the results of the row are +0 */
    float *loss;          /* [rows] */
    float *correct;       /* [rows], 0 or 1 */
    float *dx;            /* [rows][classes] or NULL */
};
#define TR_ABOUT_focal_cross_entropy(_)                                                                      \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, classes)                                                                                        \
    _(READS, x, rows * a->classes)                                                                           \
    _(INDEX, label, rows)                                                                                    \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * a->classes)                                                                         \
    _(OPERATIONS, (a->dx ? 9 : 5) * rows * a->classes)

/* Quantile regression (Koenker and Bassett 1978): output k is compared with target k / each, d = target -
   x; term = d > 0 ? q * d : (q - 1) * d with q = quantile[k]; slope = -q where d > 0, 1 - q where d < 0,
   else d. loss = lane sum(term) * (1 / width); dx = (slope * (1 / width)) * scale. */
struct tr_op_quantile_error {
    int64_t rows, width, each; /* `each`: number of quantiles of a target, a divisor of width */
    float scale;
    const float *x;        /* [rows][width] */
    const float *target;   /* [rows][width / each] */
    const float *quantile; /* [width] */
    float *loss;           /* [rows] */
    float *dx;             /* [rows][width] or NULL */
};
#define TR_ABOUT_quantile_error(_)                                                                           \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, each)                                                                                           \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows *(a->width / a->each))                                                             \
    _(READS, quantile, a->width)                                                                             \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 6 : 4) * rows * a->width)

/* Poisson regression of counts, without the terms that depend only on the target. With `logs` x is the
   logarithm of the rate: y = exp(x), term = fma(-t, x, y), slope = y - t; else x is the rate: y = x +
   epsilon, term = fma(-t, log(y), x), slope = 1 - t / y. loss = lane sum(term) * (1 / width); dx =
   (flush(slope) * (1 / width)) * scale. */
struct tr_op_poisson_error {
    int64_t rows, width;
    bool logs;
    float epsilon, scale;
    const float *x, *target; /* [rows][width] */
    float *loss;             /* [rows] */
    float *dx;               /* [rows][width] or NULL */
};
#define TR_ABOUT_poisson_error(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 7 : 4) * rows * a->width)

/* Pairs of embeddings (Hadsell, Chopra and LeCun 2006). Per row: d[k] = x[k] - x[width + k]; D = sqrt(lane
   chain(d * d)); gap = margin - D. A pair of the same (label > 0): loss = (0.5 * D) * D, f = 1. Others: loss
   = gap <= 0 ? 0 : (0.5 * gap) * gap; f = gap <= 0 or D == 0 ? 0 : -(gap / D). u = (f * d[k]) * scale; dx[k]
   = u and dx[width + k] = -u. correct = 1 if (D < 0.5 * margin) == (label > 0). */
struct tr_op_contrastive_error {
    int64_t rows, width; /* of an embedding */
    float margin, scale;
    const float *x;       /* [rows][2][width] */
    const int32_t *label; /* [rows] */
    float *loss;          /* [rows] */
    float *correct;       /* [rows], 0 or 1 */
    float *dx;            /* [rows][2][width] or NULL */
};
#define TR_ABOUT_contrastive_error(_)                                                                        \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * 2 * a->width)                                                                         \
    _(INDEX, label, rows)                                                                                    \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * 2 * a->width)                                                                       \
    _(OPERATIONS, (a->dx ? 6 : 3) * rows * a->width)

/* Triples of embeddings: an anchor, one like it, one unlike it (Schroff, Kalenichenko and Philbin 2015). Per
   row: p[k] = x[k] - x[width + k]; n[k] = x[k] - x[2 * width + k]; P = lane chain(p * p); N = lane chain(n *
   n). With `squared` fp = fn = 2; else P = sqrt(P), N = sqrt(N), fp = P == 0 ? 0 : 1 / P, fn = N == 0 ? 0 : 1
   / N. v = (P - N) + margin; v <= 0: loss = 0 and fp = fn = 0; else loss = v. u = fp * p[k], w = fn * n[k];
   dx[k] = (u - w) * scale, dx[width + k] = -u * scale, dx[2 * width + k] = w * scale. correct = 1 if P < N.
   */
struct tr_op_triplet_error {
    int64_t rows, width; /* of an embedding */
    bool squared;
    float margin, scale;
    const float *x;        /* [rows][3][width] */
    float *loss, *correct; /* [rows] */
    float *dx;             /* [rows][3][width] or NULL */
};
#define TR_ABOUT_triplet_error(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * 3 * a->width)                                                                         \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * 3 * a->width)                                                                       \
    _(OPERATIONS, (a->dx ? 12 : 6) * rows * a->width)

/* loss[r] = loss[r] * weight[label[r]]; dx[r][k] = dx[r][k] * weight[label[r]]. In place. A row with a
 * negative label does not change.
 */
struct tr_op_weigh_rows {
    int64_t rows, width;
    const float *weight;  /* by label */
    const int32_t *label; /* [rows], in range, or negative */
    float *loss;          /* [rows] */
    float *dx;            /* [rows][width] or NULL */
};
#define TR_ABOUT_weigh_rows(_)                                                                               \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS_PART, weight, tr_fewer(rows, a->width))                                                          \
    _(INDEX, label, rows)                                                                                    \
    _(UPDATES, loss, rows)                                                                                   \
    _(UPDATES, dx, rows * a->width)                                                                          \
    _(OPERATIONS, rows *(1 + (a->dx ? a->width : 0)))

/* Examples with several labels: per example e, over its places p in [e * places, (e + 1) * places) with
   label[p] >= 0, n of them, share = 1 / n (+0 where n is 0) and w[p] = weight ? weight[label[p]] : 1.
   loss[e] = lane sum over all places of (label[p] < 0 ? +0 : each_loss[p] * w[p]) * share; correct[e] =
   lane sum of each_correct[p] over all places * share. dx[p][k] = dx[p][k] * (w[p] * share), in place,
   where there is a label; elsewhere unchanged. */
struct tr_op_mean_labelled {
    int64_t rows, places, classes;
    const int32_t *label;                  /* [rows * places] below classes, or negative: none */
    const float *each_loss, *each_correct; /* [rows * places] */
    const float *weight;                   /* [classes] or NULL */
    float *loss, *correct;                 /* [rows] */
    float *dx;                             /* [rows * places][classes] or NULL */
};
#define TR_ABOUT_mean_labelled(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, places)                                                                                         \
    _(SHAPE, classes)                                                                                        \
    _(INDEX, label, rows * a->places)                                                                        \
    _(READS, each_loss, rows * a->places)                                                                    \
    _(READS, each_correct, rows * a->places)                                                                 \
    _(READS_PART, weight, tr_fewer(rows * a->places, a->classes))                                            \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(UPDATES, dx, rows * a->places * a->classes)                                                            \
    _(OPERATIONS, rows * a->places * (3 + (a->dx ? a->classes : 0)))

/* y[i] = the integral part of x[i] if 0 <= x[i] < 2^31; 0 for any other x. */
struct tr_op_to_labels {
    int64_t count;
    const float *x;
    int32_t *y;
};
#define TR_ABOUT_to_labels(_)                                                                                \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, 0)

/* Per node: y = tree over microbatches of the sum chain over rows of x. */
struct tr_op_sum_rows {
    const float *x; /* [rows] */
    float *y;       /* 1 per node */
    struct tr_cut cut;
};
#define TR_ABOUT_sum_rows(_)                                                                                 \
    _(CUT, cut)                                                                                              \
    _(READS, x, rows)                                                                                        \
    _(NODES, y, 1)                                                                                           \
    _(OPERATIONS, rows)

#endif
