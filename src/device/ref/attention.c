/* Attention over ragged sequences, learned positions, rotary positions. */
#include "device/ref/loops/chain.h"
#include "device/ref/ref.h"
#include "device/ref/scalar.h"
#include "device/rotary.h"
#include "device/ref/loops/tree.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"

#include <math.h>
#include <string.h>

/* One head of one example. */
struct head {
    const struct tr_attention *at;
    int64_t number, queries, keys, first_row, first_key;
    int64_t kv_number; /* of the head of keys and values */
    uint32_t example;
};

static struct head head_of(const struct tr_attention *at, int64_t example, int64_t number)
{
    return (struct head){
        .at = at,
        .number = number,
        .kv_number = number / (at->heads / at->kv_heads),
        .queries = at->offset[example + 1] - at->offset[example],
        .keys = at->key_offset[example + 1] - at->key_offset[example],
        .first_row = at->offset[example],
        .first_key = at->key_offset[example],
        .example = at->first_example + (uint32_t)example,
    };
}

static const float *query_of(const struct head *h, int64_t i)
{
    return h->at->q + (h->first_row + i) * h->at->q_step + h->number * h->at->size;
}

/* A row of k or v. */
static const float *row_of(const struct head *h, const float *tensor, int64_t j)
{
    return tensor + (h->first_key + j) * h->at->kv_step + h->kv_number * h->at->size;
}

/* Query i sees the keys from first_seen() to end_seen(). */
static int64_t first_seen(const struct head *h, int64_t i)
{
    int64_t t = i + (h->keys - h->queries), window = h->at->window;
    return window == 0 || t < window ? 0 : t - window + 1;
}

static int64_t end_seen(const struct head *h, int64_t i)
{
    int64_t t = i + (h->keys - h->queries), window = h->at->window;
    if (h->at->causal) return t + 1;
    return window == 0 || h->keys - t < window ? h->keys : t + window;
}

static float dot(int64_t size, const float *a, const float *b)
{
    float sum = 0;
    ref_chain_rows(size, 1, a, b, &sum);
    return sum;
}

static float kept(const struct head *h, int64_t i, int64_t j, float x)
{
    const struct tr_attention *at = h->at;
    uint32_t word[4];
    if (!(at->rate > 0)) return x;
    uint64_t block =
        ((uint64_t)h->number * (uint64_t)h->queries + (uint64_t)i) * (((uint64_t)h->keys + 3) / 4) +
        (uint64_t)j / 4;
    tr_rng_philox((tr_rng_key){at->key[0], at->key[1]}, (uint32_t)block, h->example, at->scalars->step,
                  at->layer, word);
    return tr_rng_unit(word[j % 4]) >= at->rate ? x * (1 / (1 - at->rate)) : 0;
}

/* Query i of a head; e [keys] is working memory. */
static void forward_query(const struct tr_op_attention_forward *a, const struct head *h, int64_t i, float *e)
{
    const struct tr_attention *at = &a->at;
    int64_t first = first_seen(h, i), end = end_seen(h, i),
            place = (h->first_row + i) * at->heads + h->number;
    float *y = a->y + place * at->size, sum = 0;
    for (int64_t j = first; j < end; j++) e[j] = dot(at->size, query_of(h, i), row_of(h, at->k, j));
    float greatest = e[first];
    for (int64_t j = first + 1; j < end; j++) greatest = e[j] > greatest ? e[j] : greatest;
    float shift = greatest * -at->scale;
    for (int64_t j = first; j < end; j++) {
        e[j] = tr_expf(fmaf(e[j], at->scale, shift));
        sum += e[j];
    }
    float inv = 1 / sum;
    memset(y, 0, (size_t)at->size * sizeof *y);
    for (int64_t j = first; j < end; j++) {
        float weight = kept(h, i, j, e[j]);
        ref_chain_rows(1, at->size, &weight, row_of(h, at->v, j), y);
    }
    for (int64_t k = 0; k < at->size; k++) y[k] = inv * y[k];
    at->shift[place] = shift;
    at->inv[place] = inv;
}

static int64_t most_keys(const struct tr_attention *at)
{
    int64_t most = 1;
    for (int64_t e = 0; e < at->examples; e++) {
        int64_t keys = at->key_offset[e + 1] - at->key_offset[e];
        most = keys > most ? keys : most;
    }
    return most;
}

tr_status ref_attention_forward(tr_device *device, const struct tr_op_attention_forward *a)
{
    (void)device;
    float *e = tr_alloc((size_t)most_keys(&a->at), sizeof *e);
    if (!e) return TR_ENOMEM;
    for (int64_t example = 0; example < a->at.examples; example++)
        for (int64_t number = 0; number < a->at.heads; number++) {
            struct head h = head_of(&a->at, example, number);
            for (int64_t i = 0; i < h.queries; i++) forward_query(a, &h, i, e);
        }
    tr_free(e);
    return TR_OK;
}

/* The lane chain of a * b. */
static float lane_dot(int64_t size, const float *a, const float *b)
{
    float lane[REF_LANES] = {0};
    for (int64_t k = 0; k < size; k++) lane[k % REF_LANES] = fmaf(a[k], b[k], lane[k % REF_LANES]);
    return ref_lanes_total(lane);
}

/* Continues all chains of a head, over ascending queries and, for each, ascending keys. Gradients begin as
   +0: dq in place, dk and dv [keys][size] for this head only. */
static void backward_head(const struct tr_op_attention_backward *a, const struct head *h, float *dk,
                          float *dv)
{
    const struct tr_attention *at = &a->at;
    int64_t size = at->size, step = a->gradient_step;
    for (int64_t i = 0; i < h->queries; i++) {
        int64_t row = h->first_row + i, place = row * at->heads + h->number;
        const float *q = query_of(h, i), *dy = a->dy + place * size;
        float *dq = a->dq + row * step + h->number * size;
        float d = lane_dot(size, dy, a->y + place * size);
        for (int64_t j = first_seen(h, i); j < end_seen(h, i); j++) {
            const float *k = row_of(h, at->k, j);
            float p = tr_expf(fmaf(dot(size, q, k), at->scale, at->shift[place])) * at->inv[place];
            float g = kept(h, i, j, dot(size, dy, row_of(h, at->v, j)));
            float s = p * (g - d), weight = kept(h, i, j, p);
            ref_chain_rows(1, size, &s, k, dq);
            ref_chain_rows(1, size, &s, q, dk + j * size);
            ref_chain_rows(1, size, &weight, dy, dv + j * size);
        }
        for (int64_t k = 0; k < size; k++) dq[k] = at->scale * dq[k];
    }
}

/* Adds a head's part to the gradients of its keys, or of its values; `first` of the heads that share them. */
static void add_keys(const struct tr_op_attention_backward *a, const struct head *h, bool first, float scale,
                     const float *own, float *gradient)
{
    const int64_t size = a->at.size;
    for (int64_t j = 0; j < h->keys; j++)
        for (int64_t k = 0; k < size; k++) {
            float *to = gradient + (h->first_key + j) * a->gradient_step + h->kv_number * size + k;
            const float x = scale * own[j * size + k];
            *to = first ? x : *to + x;
        }
}

tr_status ref_attention_backward(tr_device *device, const struct tr_op_attention_backward *a)
{
    (void)device;
    const struct tr_attention *at = &a->at;
    const int64_t floats = most_keys(at) * at->size;
    float *dk = tr_alloc((size_t)(2 * floats), sizeof *dk), *dv = dk + floats;
    if (!dk) return TR_ENOMEM;
    for (int64_t e = 0; e < at->examples; e++) {
        for (int64_t r = at->offset[e]; r < at->offset[e + 1]; r++)
            memset(a->dq + r * a->gradient_step, 0, (size_t)(at->heads * at->size) * sizeof(float));
        for (int64_t number = 0; number < at->heads; number++) {
            struct head h = head_of(at, e, number);
            const bool first = number % (at->heads / at->kv_heads) == 0;
            memset(dk, 0, (size_t)(2 * floats) * sizeof *dk);
            backward_head(a, &h, dk, dv);
            add_keys(a, &h, first, at->scale, dk, a->dk);
            add_keys(a, &h, first, 1, dv, a->dv);
        }
    }
    tr_free(dk);
    return TR_OK;
}

/* ---- positions ---- */

static int64_t table_row(int64_t t, int64_t length)
{
    return t < length ? t : length - 1;
}

tr_status ref_position_forward(tr_device *device, const struct tr_op_position_forward *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            const float *row = a->table + table_row(r - a->offset[e], a->length) * a->width;
            for (int64_t k = 0; k < a->width; k++) a->y[r * a->width + k] = a->x[r * a->width + k] + row[k];
        }
    return TR_OK;
}

static void table_leaf(const void *arguments, int32_t microbatch, float *dtable)
{
    const struct tr_op_position_backward *a = arguments;
    for (int64_t e = a->cut.row[microbatch]; e < a->cut.row[microbatch + 1]; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            float *row = dtable + table_row(r - a->offset[e], a->length) * a->width;
            for (int64_t k = 0; k < a->width; k++) row[k] += a->dy[r * a->width + k];
        }
}

tr_status ref_position_backward(tr_device *device, const struct tr_op_position_backward *a)
{
    (void)device;
    return ref_tree(&a->cut, a->length * a->width, table_leaf, a, a->dtable);
}

static void turn_row(const struct tr_op_rotary *a, int64_t t, float *x)
{
    int64_t half = a->size / 2;
    for (int64_t k = 0; k < half; k++) {
        double angle = (double)t * tr_rotary_turn(a, k);
        float c = (float)tr_cos(angle), s = (float)tr_cos(angle - 0x1.921fb54442d18p0);
        if (a->inverse) s = -s;
        for (int64_t h = 0; h < a->heads; h++) {
            float *to = x + h * a->size + (a->pairs ? 2 * k : k), *other = to + (a->pairs ? 1 : half);
            float first = *to, second = *other;
            *to = fmaf(-s, second, c * first);
            *other = fmaf(s, first, c * second);
        }
    }
}

tr_status ref_rotary(tr_device *device, const struct tr_op_rotary *a)
{
    (void)device;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            turn_row(a, a->past + r - a->offset[e], a->x + r * a->step);
    return TR_OK;
}
