/* Units of attention: an output of a query with all keys that it sees, or of a key with all queries. */
#include "dispute/units/numbers.h"

/* A head of an example. */
struct head {
    const struct tr_attention *at;
    int64_t number, example, first_row, queries, first_key, keys;
};

static struct head head_of(const struct tr_attention *at, int64_t row, int64_t number)
{
    const struct unit_example rows = example_of(at->offset, at->examples, row);
    const int64_t first = whole(at->key_offset + rows.number), end = whole(at->key_offset + rows.number + 1);
    return (struct head){at, number, rows.number, rows.begin, rows.end - rows.begin, first, end - first};
}

static int64_t seen(const struct head *h, int64_t i)
{
    return h->at->causal ? i + (h->keys - h->queries) + 1 : h->keys;
}

static const float *query_at(const struct head *h, int64_t i)
{
    return h->at->q + (h->first_row + i) * h->at->q_step + h->number * h->at->size;
}

static const float *key_at(const struct head *h, const float *tensor, int64_t j)
{
    return tensor + (h->first_key + j) * h->at->kv_step + h->number * h->at->size;
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
    const int64_t i = place / at->heads - h.first_row, keys = seen(&h, i);
    struct num sum = constant(0);
    if (is(to, "at.shift")) {
        struct num greatest = sum;
        for (int64_t j = 0; j < keys; j++) {
            const struct num z = dot(at->size, query_at(&h, i), key_at(&h, at->k, j));
            greatest = j == 0 ? z : if_less(greatest, z, z, greatest);
        }
        return mul(greatest, constant(-at->scale));
    }
    const struct num shift = own(at->shift + place);
    for (int64_t j = 0; j < keys; j++) {
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

UNIT(attention_backward)
{
    const struct tr_attention *at = &a->at;
    const int64_t columns = at->heads * at->size, k = to->at % at->size;
    const struct head h = head_of(at, to->at / columns, to->at % columns / at->size);
    const int64_t n = to->at / columns - h.first_row; /* the query, or the key */
    struct num sum = constant(0);
    if (is(to, "dq")) {
        for (int64_t j = 0; j < seen(&h, n); j++)
            sum = fused(slope(a, &h, n, j), in(key_at(&h, at->k, j) + k), sum);
        return mul(constant(at->scale), sum);
    }
    for (int64_t i = 0; i < h.queries; i++) {
        if (n >= seen(&h, i)) continue;
        const int64_t place = (h.first_row + i) * at->heads + h.number;
        if (is(to, "dk"))
            sum = fused(slope(a, &h, i, n), in(query_at(&h, i) + k), sum);
        else
            sum = fused(kept_at(&h, i, n, share(&h, i, n)), in(a->dy + place * at->size + k), sum);
    }
    return is(to, "dk") ? mul(constant(at->scale), sum) : sum;
}

const struct unit_entry unit_attention[] = {UNIT_ENTRY(attention_forward) UNIT_ENTRY(attention_backward)
                                                UNIT_END};
