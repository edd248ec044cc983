/* Operations: attention and positions, on sequences as in ops/sequence.h. */
#ifndef TR_DEVICE_OPS_ATTENTION_H
#define TR_DEVICE_OPS_ATTENTION_H

#include "device/ops/common.h"

/* Scaled dot-product attention (Vaswani et al. 2017): `heads` heads over vectors of `size`. Example e has
   queries [offset[e], offset[e+1]) and keys [key_offset[e], key_offset[e+1]). Of n queries and m keys, m > 0
   where n > 0, query i sees all keys; or, if causal or with window > 0, which need m >= n, the queries are
   those of the last n tokens, query i is token t = i + (m - n), and it sees the keys j <= t if causal, and
   with a window only those with t - window < j < t + window.
   Row r of head h lies at q + r * q_step + h * size; its keys and values are those of head g = h / (heads
   / kv_heads), at k and v + r * kv_step + g * size.

   Per query and head, over the keys j it sees, ascending: z[j] = chain over `size` of q * k; greatest =
   the first z, then z[j] > greatest ? z[j] : greatest; shift = greatest * -scale; e[j] = exp(fma(z[j], scale,
   shift)); inv = 1 / sum chain(e); y = inv * chain over j of kept(e[j]) * v[j]. Keeps shift and inv.

   kept(x) is x; with rate > 0: unit(bits) >= rate ? x * (1 / (1 - rate)) : 0, where key j of query i of head
   h takes word j % 4 of philox(key; (h * n + i) * ((m + 3) / 4) + j / 4 mod 2^32, example, step, layer), and
   examples are numbered first_example + e. */
struct tr_attention {
    int64_t examples, heads, size;
    int64_t kv_heads; /* divides heads */
    int64_t window;   /* >= 0 */
    bool causal;
    float scale;               /* > 0 */
    const int32_t *offset;     /* [examples + 1] of queries */
    const int32_t *key_offset; /* [examples + 1]; may be `offset` */
    const float *q, *k, *v;
    int64_t q_step, kv_step;
    float *shift, *inv; /* [rows of queries][heads]; written forward, read backward */
    float rate;         /* 0 <= rate < 1 */
    uint32_t key[2];
    uint32_t layer;
    uint32_t first_example;
    const struct tr_step_scalars *scalars; /* read where rate > 0 */
};

struct tr_op_attention_forward {
    struct tr_attention at;
    float *y; /* [rows][heads * size] */
};
#define TR_ABOUT_attention_forward(_)                                                                        \
    _(SIZE, at.examples)                                                                                     \
    _(SHAPE, at.heads)                                                                                       \
    _(SHAPE, at.kv_heads)                                                                                    \
    _(SHAPE, at.window)                                                                                      \
    _(SHAPE, at.size)                                                                                        \
    _(OFFSET, at.offset)                                                                                     \
    _(READS_PART, at.q, rows * a->at.heads * a->at.size)                                                     \
    _(READS_PART, at.k, tr_attention_keys(&a->at, host) * a->at.kv_heads * a->at.size)                       \
    _(READS_PART, at.v, tr_attention_keys(&a->at, host) * a->at.kv_heads * a->at.size)                       \
    _(INDEX, at.key_offset, a->at.examples + 1)                                                              \
    _(READS, at.scalars, 1)                                                                                  \
    _(WRITES, y, rows * a->at.heads * a->at.size)                                                            \
    _(WRITES, at.shift, rows * a->at.heads)                                                                  \
    _(KEEPS, at.inv, rows * a->at.heads)                                                                     \
    _(OPERATIONS, tr_attention_pairs(&a->at, host) * a->at.heads * (4 * a->at.size + 4))

/* Keys are the queries' own tokens (key_offset == offset), or all queries see all keys (no window, not
   causal) and n > 0 where m > 0. Per query i, key j that it sees, and head: p = exp(fma(z, scale, shift)) *
   inv, z as forward; g = kept(chain over `size` of dy * v); d[i] = lane chain over `size` of dy * y; s = p *
   (g - d[i]). dq[i] = scale * chain over the keys j of s * k[j]; dk[j] = scale
   * chain over the queries i that see it, ascending, of s * q[i]; dv[j] = chain over these i of kept(p) *
   dy[i]. Of heads that share keys, dk and dv are those of the first + those of the second, and so on.
   Gradients lie like their tensors, at gradient_step. */
struct tr_op_attention_backward {
    struct tr_attention at;
    const float *y, *dy; /* [rows][heads * size] */
    float *dq, *dk, *dv;
    int64_t gradient_step;
};
#define TR_ABOUT_attention_backward(_)                                                                       \
    _(SIZE, at.examples)                                                                                     \
    _(SHAPE, at.heads)                                                                                       \
    _(SHAPE, at.kv_heads)                                                                                    \
    _(SHAPE, at.window)                                                                                      \
    _(SHAPE, at.size)                                                                                        \
    _(OFFSET, at.offset)                                                                                     \
    _(READS_PART, at.q, rows * a->at.heads * a->at.size)                                                     \
    _(READS_PART, at.k, tr_attention_keys(&a->at, host) * a->at.kv_heads * a->at.size)                       \
    _(READS_PART, at.v, tr_attention_keys(&a->at, host) * a->at.kv_heads * a->at.size)                       \
    _(READS, at.shift, rows * a->at.heads)                                                                   \
    _(READS, at.inv, rows * a->at.heads)                                                                     \
    _(READS, y, rows * a->at.heads * a->at.size)                                                             \
    _(READS, dy, rows * a->at.heads * a->at.size)                                                            \
    _(INDEX, at.key_offset, a->at.examples + 1)                                                              \
    _(READS, at.scalars, 1)                                                                                  \
    _(WRITES_PART, dq, rows * a->at.heads * a->at.size)                                                      \
    _(WRITES_PART, dk, tr_attention_keys(&a->at, host) * a->at.kv_heads * a->at.size)                        \
    _(WRITES_PART, dv, tr_attention_keys(&a->at, host) * a->at.kv_heads * a->at.size)                        \
    _(OPERATIONS, tr_attention_pairs(&a->at, host) * a->at.heads * (10 * a->at.size + 6))

/* y[r] = x[r] + table[t], where t counts the tokens of the example from 0; tokens beyond the table use its
   last row. y may be x. */
struct tr_op_position_forward {
    int64_t examples, width, length;
    const int32_t *offset;
    const float *table; /* [length][width] */
    const float *x;
    float *y;
};
#define TR_ABOUT_position_forward(_)                                                                         \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, length)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS_PART, table, tr_fewer(rows, a->length) * a->width)                                               \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, rows * a->width)

/* Per node: dtable[t] = tree over microbatches of the sum chain over the rows of dy that used it; +0 where
   none did. */
struct tr_op_position_backward {
    int64_t width, length;
    const int32_t *offset;
    const float *dy;
    float *dtable;     /* [length][width] per node */
    struct tr_cut cut; /* counts examples, not rows */
};
#define TR_ABOUT_position_backward(_)                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, length)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, rows * a->width)                                                                            \
    _(NODES, dtable, a->length * a->width)                                                                   \
    _(OPERATIONS, rows * a->width)

/* Rotary positions (Su et al. 2021), in place, of `heads` vectors of `size` (even) in each row, one after
   the other from x + r * step. a and b become fma(-s, b, c * a) and fma(s, a, c * b), which are x[k] and
   x[k + size / 2], with `pairs` x[2k] and x[2k + 1]; k < size / 2; c = cos, s = sin of the angle t * f, t
   counting the tokens of the example from `past`. `inverse` turns by -s, which is the gradient.

   f = tr_pow(base, -2k / size), scaled: with original = 0 (linear) f / factor; else, as Llama 3 does, w =
   0x1.921fb54442d18p2 / f is the tokens of a turn, and where w < original / high f stays, where w > original
   / low it is f / factor, and between them (1 - u) * f / factor + u * f, u = (original / w - low) / (high -
   low). The angle is (double)t * f, c = (float)tr_cos(angle), s = (float)tr_cos(angle - pi / 2), pi / 2 =
   0x1.921fb54442d18p0. All but x is double; products and quotients are taken from left to right. */
struct tr_op_rotary {
    int64_t examples, heads, size, step;
    double base;
    bool pairs;
    bool inverse;
    double factor;              /* >= 1; 1: no scaling */
    double original, low, high; /* 0, or > 0 and 0 < low < high */
    int64_t past;               /* >= 0 */
    const int32_t *offset;
    float *x;
};
#define TR_ABOUT_rotary(_)                                                                                   \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, heads)                                                                                          \
    _(SHAPE, size)                                                                                           \
    _(SHAPE, step)                                                                                           \
    _(OFFSET, offset)                                                                                        \
    _(UPDATES_PART, x, rows * a->heads * a->size)                                                            \
    _(OPERATIONS, 3 * rows * a->heads * a->size)

#endif
