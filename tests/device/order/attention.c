/* Attention and positions. */
#include "device/order/order.h"

#include "base/numbers/math.h"
#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"

enum { MOST_KEYS = 512 };

/* The head of keys that head h takes. */
static int64_t shared(const struct tr_attention *at, int64_t h)
{
    return h * at->kv_heads / at->heads;
}

/* Number `index` of key j of an example, or of a query, of head h. */
static float part_of(const float *tensor, int64_t step, int64_t row, const struct tr_attention *at, int64_t h,
                     int64_t index)
{
    return tensor[row * step + h * at->size + index];
}

static float kept(const struct tr_attention *at, int64_t e, int64_t h, int64_t i, int64_t j, float x)
{
    const int64_t n = at->offset[e + 1] - at->offset[e], m = at->key_offset[e + 1] - at->key_offset[e];
    uint32_t words[4];
    if (at->rate <= 0) return x;
    tr_rng_philox((tr_rng_key){at->key[0], at->key[1]}, (uint32_t)((h * n + i) * ((m + 3) / 4) + j / 4),
                  at->first_example + (uint32_t)e, at->scalars->step, at->layer, words);
    return tr_rng_unit(words[j % 4]) >= at->rate ? x * (1 / (1 - at->rate)) : 0;
}

/* Whether query i of example e sees key j. */
static bool sees(const struct tr_attention *at, int64_t e, int64_t i, int64_t j)
{
    const int64_t n = at->offset[e + 1] - at->offset[e], m = at->key_offset[e + 1] - at->key_offset[e];
    const int64_t away = j - (i + (m - n));
    if (at->causal && away > 0) return false;
    return at->window == 0 || (away < at->window && -away < at->window);
}

static float score(const struct tr_attention *at, int64_t e, int64_t h, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < at->size; k++)
        term(part_of(at->q, at->q_step, at->offset[e] + i, at, h, k),
             part_of(at->k, at->kv_step, at->key_offset[e] + j, at, shared(at, h), k));
    return chain(0);
}

static void attend(const struct tr_op_attention_forward *a, int64_t e, int64_t h, int64_t i)
{
    const struct tr_attention *at = &a->at;
    const int64_t keys = at->key_offset[e + 1] - at->key_offset[e];
    const int64_t row = at->offset[e] + i, place = row * at->heads + h;
    float z[MOST_KEYS] = {0}, most = 0;
    bool any = false;
    for (int64_t j = 0; j < keys; j++) {
        if (!sees(at, e, i, j)) continue;
        z[j] = score(at, e, h, i, j);
        most = !any || z[j] > most ? z[j] : most;
        any = true;
    }
    at->shift[place] = most * -at->scale;
    for (int64_t j = 0; j < keys; j++)
        if (sees(at, e, i, j)) number(z[j] = tr_expf(fused(z[j], at->scale, at->shift[place])));
    at->inv[place] = 1 / sum_chain(0);
    for (int64_t k = 0; k < at->size; k++) {
        for (int64_t j = 0; j < keys; j++)
            if (sees(at, e, i, j))
                term(kept(at, e, h, i, j, z[j]),
                     part_of(at->v, at->kv_step, at->key_offset[e] + j, at, shared(at, h), k));
        a->y[place * at->size + k] = at->inv[place] * chain(0);
    }
}

ORDER(attention_forward)
{
    for (int64_t e = 0; e < a->at.examples; e++)
        for (int64_t i = 0; i < a->at.offset[e + 1] - a->at.offset[e]; i++)
            for (int64_t h = 0; h < a->at.heads; h++) attend(a, e, h, i);
}

/* p and s of query i and key j. */
static void slopes(const struct tr_op_attention_backward *a, int64_t e, int64_t h, int64_t i, int64_t j,
                   float *p, float *s)
{
    const struct tr_attention *at = &a->at;
    const int64_t place = (at->offset[e] + i) * at->heads + h;
    const float *dy = a->dy + place * at->size, *y = a->y + place * at->size;
    *p = tr_expf(fused(score(at, e, h, i, j), at->scale, at->shift[place])) * at->inv[place];
    for (int64_t k = 0; k < at->size; k++)
        term(dy[k], part_of(at->v, at->kv_step, at->key_offset[e] + j, at, shared(at, h), k));
    const float g = kept(at, e, h, i, j, chain(0));
    for (int64_t k = 0; k < at->size; k++) term(dy[k], y[k]);
    *s = *p * (g - lane_chain());
}

ORDER(attention_backward)
{
    const struct tr_attention *at = &a->at;
    static float p[MOST_KEYS][MOST_KEYS], s[MOST_KEYS][MOST_KEYS];
    for (int64_t n = 0; n < at->examples * at->heads; n++) {
        const int64_t e = n / at->heads, h = n % at->heads;
        const int64_t queries = at->offset[e + 1] - at->offset[e];
        const int64_t keys = at->key_offset[e + 1] - at->key_offset[e];
        for (int64_t i = 0; i < queries; i++)
            for (int64_t j = 0; j < keys; j++)
                if (sees(at, e, i, j)) slopes(a, e, h, i, j, &p[i][j], &s[i][j]);
        for (int64_t k = 0; k < at->size; k++) {
            for (int64_t i = 0; i < queries; i++) {
                for (int64_t j = 0; j < keys; j++)
                    if (sees(at, e, i, j))
                        term(s[i][j],
                             part_of(at->k, at->kv_step, at->key_offset[e] + j, at, shared(at, h), k));
                a->dq[(at->offset[e] + i) * a->gradient_step + h * at->size + k] = at->scale * chain(0);
            }
            for (int64_t j = 0; j < keys; j++) {
                const int64_t to = (at->key_offset[e] + j) * a->gradient_step + shared(at, h) * at->size + k;
                const bool first = h == 0 || shared(at, h) != shared(at, h - 1);
                for (int64_t i = 0; i < queries; i++)
                    if (sees(at, e, i, j))
                        term(s[i][j], part_of(at->q, at->q_step, at->offset[e] + i, at, h, k));
                const float of_key = at->scale * chain(0);
                a->dk[to] = first ? of_key : a->dk[to] + of_key;
                for (int64_t i = 0; i < queries; i++)
                    if (sees(at, e, i, j))
                        term(kept(at, e, h, i, j, p[i][j]),
                             a->dy[((at->offset[e] + i) * at->heads + h) * at->size + k]);
                const float of_value = chain(0);
                a->dv[to] = first ? of_value : a->dv[to] + of_value;
            }
        }
    }
}

static int64_t table_row(int64_t t, int64_t length)
{
    return t < length ? t : length - 1;
}

ORDER(position_forward)
{
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            for (int64_t k = 0; k < a->width; k++)
                a->y[r * a->width + k] =
                    a->x[r * a->width + k] + a->table[table_row(r - a->offset[e], a->length) * a->width + k];
}

static float table_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_position_backward *a = arguments;
    for (int64_t e = first; e < end; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            if (table_row(r - a->offset[e], a->length) == k / a->width)
                number(a->dy[r * a->width + k % a->width]);
    return sum_chain(0);
}

ORDER(position_backward)
{
    each_node(&a->cut, a->length * a->width, a->dtable, table_leaf, a);
}

/* Turns of pair k from a token to the next, in radians. */
static double turn(const struct tr_op_rotary *a, int64_t k)
{
    const double plain = tr_pow(a->base, -2.0 * (double)k / (double)a->size), slow = plain / a->factor;
    const double period = 0x1.921fb54442d18p2 / plain; /* in tokens */
    if (a->original == 0 || period > a->original / a->low) return slow;
    if (period < a->original / a->high) return plain;
    const double share = (a->original / period - a->low) / (a->high - a->low);
    const double slower = (1 - share) * plain / a->factor, rest = share * plain;
    return slower + rest;
}

ORDER(rotary)
{
    const double quarter = 0x1.921fb54442d18p0;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            for (int64_t i = 0; i < a->heads * a->size / 2; i++) {
                const int64_t h = i / (a->size / 2), k = i % (a->size / 2);
                const double angle = (double)(a->past + r - a->offset[e]) * turn(a, k);
                const float c = (float)tr_cos(angle), sine = (float)tr_cos(angle - quarter);
                const float s = a->inverse ? -sine : sine;
                float *vector = a->x + r * a->step + h * a->size;
                float *x = a->pairs ? &vector[2 * k] : &vector[k];
                float *y = a->pairs ? &vector[2 * k + 1] : &vector[k + a->size / 2];
                const float first = *x, second = *y;
                *x = fused(-s, second, c * first);
                *y = fused(s, first, c * second);
            }
}
