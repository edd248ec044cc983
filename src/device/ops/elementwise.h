/* Operations: elementwise, columns, dropout. */
#ifndef TR_DEVICE_OPS_ELEMENTWISE_H
#define TR_DEVICE_OPS_ELEMENTWISE_H

#include "device/ops/common.h"

/* y[i] = act(x[i]); y may be x. */
struct tr_op_activation_forward {
    int64_t count;
    const float *x;
    float *y;
    enum tr_activation activation;
    float slope;
};
#define TR_ABOUT_activation_forward(_)                                                                       \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, a->count)

/* dx[i] = dy[i] * act'(x). RELU: y > 0 ? dy : 0; LEAKY_RELU: y > 0 ? dy : slope * dy; TANH: dy * fma(-y, y,
   1); SIGMOID: dy * (y * (1 - y)); GELU: dy * fma(x, pdf, cdf), pdf = exp(-0.5 * (x * x)) * 0x1.988454p-2f,
   cdf = 0.5 * (1 + erf(x * 0x1.6a09e6p-1f)). GELU_TANH: dy * fma((0.5 * x) * fma(-t, t, 1), fma(x * x,
   0x1.b6676cp-4f, 0x1.988454p-1f), 0.5 * (1 + t)), t the hyperbolic tangent of forward. SILU: dy * (s *
   fma(x, 1 - s, 1)), s = sigmoid(x). HARD_SWISH: -3 >= x ? 0 : x >= 3 ? dy : dy * fma(x, 0x1.555556p-2f,
   0.5). RELU6: 0 >= x ? 0 : x >= 6 ? 0 : dy. NONE copies. dx may be dy. */
struct tr_op_activation_backward {
    int64_t count;
    const float *x; /* read where tr_activation_reads_input(), else may be NULL */
    const float *y; /* read elsewhere */
    const float *dy;
    float *dx;
    enum tr_activation activation;
    float slope;
};
#define TR_ABOUT_activation_backward(_)                                                                      \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(READS, y, a->count)                                                                                    \
    _(READS, dy, a->count)                                                                                   \
    _(WRITES, dx, a->count)                                                                                  \
    _(OPERATIONS, a->count)

/* y[i] = a[i] + b[i]; y may be a or b. */
struct tr_op_add {
    int64_t count;
    const float *a;
    const float *b;
    float *y;
};
#define TR_ABOUT_add(_)                                                                                      \
    _(SIZE, count)                                                                                           \
    _(READS, a, a->count)                                                                                    \
    _(READS, b, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, a->count)

/* y[r][p][k] = a[r][p][k] * b[r][k]; with spatial 1 elementwise. y may be a. */
struct tr_op_multiply {
    int64_t rows, spatial, width;
    const float *a; /* [rows][spatial][width] */
    const float *b; /* [rows][width] */
    float *y;       /* [rows][spatial][width] */
};
#define TR_ABOUT_multiply(_)                                                                                 \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(READS, a, rows * a->spatial * a->width)                                                                \
    _(READS, b, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->spatial * a->width)                                                               \
    _(OPERATIONS, rows * a->spatial * a->width)

/* The gradient of multiply for b: y[r][k] = chain over p of a[r][p][k] * b[r][p][k]. */
struct tr_op_multiply_sum {
    int64_t rows, spatial, width;
    const float *a; /* [rows][spatial][width] */
    const float *b; /* [rows][spatial][width] */
    float *y;       /* [rows][width] */
};
#define TR_ABOUT_multiply_sum(_)                                                                             \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(READS, a, rows * a->spatial * a->width)                                                                \
    _(READS, b, rows * a->spatial * a->width)                                                                \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, 2 * rows * a->spatial * a->width)

/* Rows of several tensors one after another in each row of y: y[r] = x[0][r], x[1][r], ...; +0 where a part
   is NULL. */
#define TR_JOIN_PARTS 8
struct tr_op_join_columns {
    int64_t rows;
    int32_t parts;
    int64_t width[TR_JOIN_PARTS];  /* >= 0 */
    const float *x[TR_JOIN_PARTS]; /* [rows][width of the part] or NULL */
    float *y;                      /* [rows][sum of widths] */
};
#define TR_ABOUT_join_columns(_)                                                                             \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, parts)                                                                                          \
    _(SHAPE, width)                                                                                          \
    _(READS, x[0], rows * a->width[0])                                                                       \
    _(READS, x[1], rows * a->width[1])                                                                       \
    _(READS, x[2], rows * a->width[2])                                                                       \
    _(READS, x[3], rows * a->width[3])                                                                       \
    _(READS, x[4], rows * a->width[4])                                                                       \
    _(READS, x[5], rows * a->width[5])                                                                       \
    _(READS, x[6], rows * a->width[6])                                                                       \
    _(READS, x[7], rows * a->width[7])                                                                       \
    _(WRITES, y, rows *tr_join_width(a->parts, a->width))                                                    \
    _(OPERATIONS, 0)

/* Writes the parts of each row of x to y[0], y[1], ...; NULL parts are skipped. */
struct tr_op_split_columns {
    int64_t rows;
    int32_t parts;
    int64_t width[TR_JOIN_PARTS];
    const float *x;
    float *y[TR_JOIN_PARTS];
};
#define TR_ABOUT_split_columns(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, parts)                                                                                          \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows *tr_join_width(a->parts, a->width))                                                     \
    _(WRITES, y[0], rows * a->width[0])                                                                      \
    _(WRITES, y[1], rows * a->width[1])                                                                      \
    _(WRITES, y[2], rows * a->width[2])                                                                      \
    _(WRITES, y[3], rows * a->width[3])                                                                      \
    _(WRITES, y[4], rows * a->width[4])                                                                      \
    _(WRITES, y[5], rows * a->width[5])                                                                      \
    _(WRITES, y[6], rows * a->width[6])                                                                      \
    _(WRITES, y[7], rows * a->width[7])                                                                      \
    _(OPERATIONS, 0)

/* y[i] = factor * x[i]; y may be x. */
struct tr_op_scale {
    int64_t count;
    float factor;
    const float *x;
    float *y;
};
#define TR_ABOUT_scale(_)                                                                                    \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, a->count)

/* y[i] = value. */
struct tr_op_fill {
    int64_t count;
    float value;
    float *y;
};
#define TR_ABOUT_fill(_)                                                                                     \
    _(SIZE, count)                                                                                           \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, 0)

/* Forward and backward alike: y = unit(bits) >= rate ? x * (1 / (1 - rate)) : 0, where element i of an
   example takes word i % 4 of philox(key; i / 4, example, step, layer) and unit() is tr_rng_unit(). Examples
   are numbered first_example + e. y may be x. */
struct tr_op_dropout {
    int64_t examples, width;
    const int32_t
        *offset; /* NULL, or [examples + 1]: example e has rows [offset[e], offset[e+1]) of `width` */
    const float *x;
    float *y;
    float rate; /* 0 <= rate < 1 */
    uint32_t key[2];
    uint32_t layer;
    uint32_t first_example;
    const struct tr_step_scalars *scalars;
};
#define TR_ABOUT_dropout(_)                                                                                  \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(READS, scalars, 1)                                                                                     \
    _(OPERATIONS, rows * a->width)

/* The same for whole examples: all of y is x * (1 / (1 - rate)) or +0, by word 0 of philox(key; 0, example,
   step, layer). y may be x. */
struct tr_op_drop_examples {
    int64_t examples, width;
    const int32_t *offset; /* as of dropout */
    const float *x;
    float *y;
    float rate; /* 0 <= rate < 1 */
    uint32_t key[2];
    uint32_t layer;
    uint32_t first_example;
    const struct tr_step_scalars *scalars;
};
#define TR_ABOUT_drop_examples(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(READS, scalars, 1)                                                                                     \
    _(OPERATIONS, rows * a->width)

#endif
