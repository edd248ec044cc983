/* Units of attention: an output of a query with all keys that it sees, or of a key with all queries. */
#include "dispute/units/numbers.h"

/* A head of an example. */
struct head {
    const struct tr_attention *at;
    int64_t number, example, first_row, queries, first_key, keys;
};

/* A head of the example that has this query, or, with `of_key`, this key. */
static struct head head_with(const struct tr_attention *at, int64_t row, int64_t number, bool of_key)
{
    const int64_t e = example_of(of_key ? at->key_offset : at->offset, at->examples, row).number;
    const int64_t begin = whole(at->offset + e), end = whole(at->offset + e + 1);
    const int64_t key = whole(at->key_offset + e), last = whole(at->key_offset + e + 1);
    return (struct head){at, number, e, begin, end - begin, key, last - key};
}

static struct head head_of(const struct tr_attention *at, int64_t row, int64_t number)
{
    return head_with(at, row, number, false);
}

/* Query i sees the keys from the first one up to, but not including, the second. */
static int64_t first_seen(const struct head *h, int64_t i)
{
    const int64_t t = i + (h->keys - h->queries), window = h->at->window;
    return window == 0 || t < window ? 0 : t - window + 1;
}

static int64_t end_seen(const struct head *h, int64_t i)
{
    const int64_t t = i + (h->keys - h->queries), window = h->at->window;
    if (h->at->causal) return t + 1;
    return window == 0 || h->keys - t < window ? h->keys : t + window;
}

static const float *query_at(const struct head *h, int64_t i)
{
    return h->at->q + (h->first_row + i) * h->at->q_step + h->number * h->at->size;
}

static const float *key_at(const struct head *h, const float *tensor, int64_t j)
{
    const int64_t shared = h->number / (h->at->heads / h->at->kv_heads);
    return tensor + (h->first_key + j) * h->at->kv_step + shared * h->at->size;
}

static struct num dot(int64_t size, const float *a, const float *b)
{
    struct num sum = constant(0);
    for (int64_t k = 0; k < size; k++) sum = fused(in(a + k), in(b + k), sum);
    return sum;
}

static struct num kept_at(const struct head *h, int64_t i, int64_t j, struct num x)
{
    const struct tr_attention *at = h->at;
    if (!(at->rate > 0)) return x;
    const uint64_t block =
        ((uint64_t)h->number * (uint64_t)h->queries + (uint64_t)i) * (((uint64_t)h->keys + 3) / 4) +
        (uint64_t)j / 4;
    const struct num counter[] = {word((uint32_t)block), word(at->first_example + (uint32_t)h->example),
                                  in(&at->scalars->step), word(at->layer)};
    return kept(philox(at->key, counter, (int)(j % 4)), at->rate, x);
}

/* exp(fma(z, scale, shift)). */
static struct num weight(const struct head *h, int64_t i, int64_t j, struct num shift)
{
    const struct num z = dot(h->at->size, query_at(h, i), key_at(h, h->at->k, j));
    return exponential(fused(z, constant(h->at->scale), shift));
}

UNIT(attention_forward)
{
    const struct tr_attention *at = &a->at;
    const bool is_y = is(to, "y");
    const int64_t place = is_y ? to->at / at->size : to->at;
    const struct head h = head_of(at, place / at->heads, place % at->heads);
    const int64_t i = place / at->heads - h.first_row, first = first_seen(&h, i), end = end_seen(&h, i);
    struct num sum = constant(0);
    if (is(to, "at.shift")) {
        struct num greatest = sum;
        for (int64_t j = first; j < end; j++) {
            const struct num z = dot(at->size, query_at(&h, i), key_at(&h, at->k, j));
            greatest = j == first ? z : if_less(greatest, z, z, greatest);
        }
        return mul(greatest, constant(-at->scale));
    }
    const struct num shift = own(at->shift + place);
    for (int64_t j = first; j < end; j++) {
        const struct num e = weight(&h, i, j, shift);
        sum = is_y ? fused(kept_at(&h, i, j, e), in(key_at(&h, at->v, j) + to->at % at->size), sum)
                   : add(sum, e);
    }
    return is_y ? mul(own(at->inv + place), sum) : over(constant(1), sum);
}

/* p of a pair. */
static struct num share(const struct head *h, int64_t i, int64_t j)
{
    const int64_t place = (h->first_row + i) * h->at->heads + h->number;
    return mul(weight(h, i, j, in(h->at->shift + place)), in(h->at->inv + place));
}

/* s of a pair. */
static struct num slope(const struct tr_op_attention_backward *a, const struct head *h, int64_t i, int64_t j)
{
    const int64_t size = h->at->size, place = (h->first_row + i) * h->at->heads + h->number;
    const float *dy = a->dy + place * size, *y = a->y + place * size;
    struct lane_sum d = lanes_begin();
    for (int64_t k = 0; k < size; k++) lanes_fused(&d, in(dy + k), in(y + k));
    const struct num g = kept_at(h, i, j, dot(size, dy, key_at(h, h->at->v, j)));
    return mul(share(h, i, j), sub(g, lanes_total(&d)));
}

/* The contribution of a head to number k of the gradient of its key j, or of its value. */
static struct num of_key(const struct tr_op_attention_backward *a, const struct head *h, int64_t j, int64_t k,
                         bool is_key)
{
    const struct tr_attention *at = h->at;
    struct num sum = constant(0);
    for (int64_t i = 0; i < h->queries; i++) {
        if (j < first_seen(h, i) || j >= end_seen(h, i)) continue;
        const int64_t row = (h->first_row + i) * at->heads + h->number;
        if (is_key)
            sum = fused(slope(a, h, i, j), in(query_at(h, i) + k), sum);
        else
            sum = fused(kept_at(h, i, j, share(h, i, j)), in(a->dy + row * at->size + k), sum);
    }
    return is_key ? mul(constant(at->scale), sum) : sum;
}

UNIT(attention_backward)
{
    const struct tr_attention *at = &a->at;
    const bool is_query = is(to, "dq");
    const int64_t columns = (is_query ? at->heads : at->kv_heads) * at->size, k = to->at % at->size;
    const int64_t number = to->at % columns / at->size, row = to->at / columns;
    struct num sum = constant(0);
    if (is_query) {
        const struct head h = head_of(at, row, number);
        const int64_t i = row - h.first_row;
        for (int64_t j = first_seen(&h, i); j < end_seen(&h, i); j++)
            sum = fused(slope(a, &h, i, j), in(key_at(&h, at->k, j) + k), sum);
        return mul(constant(at->scale), sum);
    }
    const int64_t sharing = at->heads / at->kv_heads;
    for (int64_t n = 0; n < sharing; n++) {
        const struct head h = head_with(at, row, number * sharing + n, true);
        const struct num own_part = of_key(a, &h, row - h.first_key, k, is(to, "dk"));
        sum = n == 0 ? own_part : add(sum, own_part);
    }
    return sum;
}

const struct unit_entry unit_attention[] = {UNIT_ENTRY(attention_forward) UNIT_ENTRY(attention_backward)
                                                UNIT_END};
