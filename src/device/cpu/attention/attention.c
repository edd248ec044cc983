/* Attention over ragged sequences.
 *
 * A member takes one head of one example after the other: first those of its own examples, then those that
 * other members have not begun; heads do not depend on each other. Scores never leave the caches. A panel
 * of TILE_COLUMNS queries meets all the keys that they see, and its scores lie [key][query]. So softmax
 * goes down the columns of vectors, and the weighted sum finds the scores in the order of its chains. A
 * causal chain ends at the query's own key: these steps are the corner of a tile.
 */
#include "device/cpu/attention/attention.h"

#include "base/fail.h"
#include "device/cpu/vectors/lanes.h"
#include "device/cpu/vectors/math.h"

#include <stdatomic.h>
#include <string.h>

struct forward {
    float *keys;    /* panels [keys][TILE_COLUMNS] */
    float *values;  /* likewise */
    float *queries; /* [size][TILE_COLUMNS] */
    float *scores;  /* [keys][TILE_COLUMNS] */
    struct head_ahead *ahead;
};

static int64_t forward_floats(int64_t keys, int64_t size)
{
    return 2 * packed_floats(size, TILE_COLUMNS, keys) + packed_floats(TILE_COLUMNS, TILE_COLUMNS, size) +
           packed_floats(TILE_COLUMNS, TILE_COLUMNS, keys) + 4 * CPU_ALIGN;
}

/* scores[j][i] of all keys below `limit` with the queries of the panel that begins at i0. */
static void forward_scores(const struct head *h, const struct forward *f, int64_t i0, int64_t columns,
                           int64_t limit)
{
    const int64_t size = h->at->size, tiles = tile_count(h->keys);
    const struct tile_segment segment = {.length = (int32_t)size};
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t first = tile_first(h->keys, tiles, t);
        const int64_t height = tile_first(h->keys, tiles, t + 1) - first;
        if (first >= limit) break;
        if (first + height <= seen_from(h, i0)) continue;
        /* The first half of the queries may see none of these keys. */
        const int64_t skip =
            columns == TILE_COLUMNS && first >= seen(h, i0 + HALF_COLUMNS - 1) ? HALF_COLUMNS : 0;
        struct row_tile tile = {.tile = {.segments = &segment,
                                         .count = 1,
                                         .a = f->keys + first * TILE_COLUMNS,
                                         .a_step = TILE_COLUMNS,
                                         .b = f->queries + skip,
                                         .b_step = TILE_COLUMNS,
                                         .to = f->scores + first * TILE_COLUMNS + skip,
                                         .to_step = TILE_COLUMNS,
                                         .columns = columns - skip},
                                .run = TILE_COLUMNS,
                                .jump = h->keys * TILE_COLUMNS};
        head_fetch(f->ahead, &tile);
        row_tile_compute(height, &tile);
    }
}

/* State of the softmax of VW queries, and where their dropout mask begins. */
struct softmax {
    vf shift, inv;
    vi block; /* of the mask, for keys 0 to 3 */
};

/* Chains of maxima that run in parallel, to hide the latency of one. */
#define PARTS 4

/* The greatest of `keys` scores; of equal ones the first. Each chain begins with the very first score, so
   that only a greater one replaces it. */
V_INLINE vf greatest_of(const float *scores, int64_t keys)
{
    const int64_t each = keys / PARTS;
    vf part[PARTS];
    V_UNROLL for (int p = 0; p < PARTS; p++) part[p] = v_load(scores);
    for (int64_t j = 0; j < each; j++)
        V_UNROLL for (int p = 0; p < PARTS; p++) part[p] =
            v_greater(v_load(scores + (p * each + j) * TILE_COLUMNS), part[p]);
    for (int64_t j = PARTS * each; j < keys; j++)
        part[PARTS - 1] = v_greater(v_load(scores + j * TILE_COLUMNS), part[PARTS - 1]);
    V_UNROLL for (int p = 1; p < PARTS; p++) part[0] = v_greater(part[p], part[0]);
    return part[0];
}

/* kept() of the scores of the keys from `first` on. */
static void forward_drop(const struct head *h, float *scores, int64_t first, int64_t limit,
                         const struct softmax *s)
{
    for (int64_t j = first / 4 * 4; h->at->rate > 0 && j < limit; j += 4) {
        vi words[4];
        mask_blocks(&h->mask, vi_add(s->block, vi_set1((int32_t)(j / 4))), h->example, words);
        for (int w = 0; w < 4 && j + w < limit; w++) {
            float *at = scores + (j + w) * TILE_COLUMNS;
            v_store(at, mask_kept(&h->mask, words[w], v_load(at)));
        }
    }
}

/* VW columns of scores become kept(e). All queries see the first `first` keys; each query sees one more
   than the one before it, up to `limit`. */
static void forward_softmax(const struct head *h, float *scores, int64_t first, int64_t limit,
                            struct softmax *s)
{
    float number[VW];
    for (int i = 0; i < VW; i++) number[i] = (float)i;
    const vf query = v_load(number), scale = v_set1(h->at->scale);
    vf greatest = greatest_of(scores, first), sum = v_zero();
    for (int64_t j = first; j < limit; j++) {
        const vm sees = v_ge(query, v_set1((float)(j + 1 - first)));
        greatest = v_select(sees, v_greater(v_load(scores + j * TILE_COLUMNS), greatest), greatest);
    }
    s->shift = v_mul(greatest, v_set1(-h->at->scale));
    for (int64_t j = 0; j < first; j++) {
        const vf e = v_exp(v_fma(v_load(scores + j * TILE_COLUMNS), scale, s->shift));
        sum = v_add(sum, e);
        v_store(scores + j * TILE_COLUMNS, e);
    }
    for (int64_t j = first; j < limit; j++) {
        const vm sees = v_ge(query, v_set1((float)(j + 1 - first)));
        const vf e = v_exp(v_fma(v_load(scores + j * TILE_COLUMNS), scale, s->shift));
        sum = v_select(sees, v_add(sum, e), sum);
        v_store(scores + j * TILE_COLUMNS, e);
    }
    s->inv = v_div(v_set1(1.0f), sum);
    forward_drop(h, scores, 0, limit, s);
}

/* The same for the queries from `query` to `last`, each of which sees different keys. */
static void forward_softmax_window(const struct head *h, float *scores, int64_t query, int64_t last,
                                   struct softmax *s)
{
    const int64_t first = seen_from(h, query), limit = seen(h, last);
    float from[VW], end[VW];
    for (int i = 0; i < VW; i++) { /* the first and the last key of each query, counted from `first` */
        from[i] = (float)(seen_from(h, smaller(query + i, last)) - first);
        end[i] = (float)(seen(h, smaller(query + i, last)) - 1 - first);
    }
    const vf begins = v_load(from), ends = v_load(end), scale = v_set1(h->at->scale);
    vf greatest = v_zero(), sum = v_zero();
    for (int64_t j = first; j < limit; j++) {
        const vf key = v_set1((float)(j - first)), z = v_load(scores + j * TILE_COLUMNS);
        const vf most = v_select(v_ge(begins, key), z, v_greater(z, greatest));
        greatest = v_select(v_ge(ends, key), most, greatest);
    }
    s->shift = v_mul(greatest, v_set1(-h->at->scale));
    for (int64_t j = first; j < limit; j++) {
        const vf key = v_set1((float)(j - first));
        const vf e = v_exp(v_fma(v_load(scores + j * TILE_COLUMNS), scale, s->shift));
        const vf more = v_select(v_ge(key, begins), v_add(sum, e), sum);
        sum = v_select(v_ge(ends, key), more, sum);
        v_store(scores + j * TILE_COLUMNS, e);
    }
    s->inv = v_div(v_set1(1.0f), sum);
    forward_drop(h, scores, first, limit, s);
}

/* y of `count` queries from i0 on. With a window each query sees different keys: then a tile has one
   query. */
static void forward_values(const struct head *h, const struct forward *f, float *y, int64_t i0, int64_t count,
                           const float *inv)
{
    const struct tr_attention *at = h->at;
    const int64_t width = at->heads * at->size, tiles = at->window > 0 ? count : tile_count(count);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t r0 = tile_first(count, tiles, t), height = tile_first(count, tiles, t + 1) - r0;
        /* Of the first query; if causal, each later one sees one key more. */
        const int64_t from = seen_from(h, i0 + r0), keys = seen(h, i0 + r0);
        const struct tile_segment segment = {.length = (int32_t)(keys - from)};
        float *to = y + (h->row + i0 + r0) * width + h->number * at->size;
        for (int64_t c = 0; c < at->size; c += TILE_COLUMNS) {
            const float *values = f->values + c * h->keys;
            const struct tile tile = {.segments = &segment,
                                      .count = 1,
                                      .corner = at->causal ? TILE_FALLING : TILE_NO_CORNER,
                                      .corner_a = f->scores + keys * TILE_COLUMNS + r0,
                                      .corner_b = values + keys * TILE_COLUMNS,
                                      .a = f->scores + from * TILE_COLUMNS + r0,
                                      .a_step = TILE_COLUMNS,
                                      .b = values + from * TILE_COLUMNS,
                                      .b_step = TILE_COLUMNS,
                                      .to = to + c,
                                      .to_step = width,
                                      .columns = smaller(TILE_COLUMNS, at->size - c)};
            tile_compute(height, &tile);
        }
        for (int64_t r = 0; r < height; r++) {
            const struct lanes factor = lanes_set1(inv[r0 + r]);
            for (int64_t k = 0; k < at->size; k += LANES) {
                float *part = to + r * width + k;
                lanes_store(part, lanes_mul(factor, lanes_load(part, at->size - k)), at->size - k);
            }
        }
    }
}

static void forward_head(const void *arguments, const struct head *h, float *memory)
{
    const struct tr_op_attention_forward *a = arguments;
    const struct tr_attention *at = h->at;
    struct head_ahead ahead = {0};
    const int64_t width = at->heads * at->size;
    head_ahead_add(&ahead, a->y + h->row * width + h->number * at->size, width, h->queries, at->size);
    if (h->next) {
        const struct head *next = h->next;
        head_ahead_add(&ahead, row_of(next, at->k, 0), at->kv_step, next->keys, at->size);
        head_ahead_add(&ahead, row_of(next, at->v, 0), at->kv_step, next->keys, at->size);
        head_ahead_add(&ahead, query_of(next, 0), at->q_step, next->queries, at->size);
    }
    const int64_t tiles = (h->queries + TILE_COLUMNS - 1) / TILE_COLUMNS * tile_count(h->keys);
    head_ahead_begin(&ahead, at->causal ? tiles / 2 : tiles, at->size);
    const struct forward f = {
        .ahead = &ahead,
        .keys = take(&memory, packed_floats(at->size, TILE_COLUMNS, h->keys)),
        .values = take(&memory, packed_floats(at->size, TILE_COLUMNS, h->keys)),
        .queries = take(&memory, packed_floats(TILE_COLUMNS, TILE_COLUMNS, at->size)),
        .scores = take(&memory, packed_floats(TILE_COLUMNS, TILE_COLUMNS, h->keys)),
    };
    const int64_t blocks = (h->keys + 3) / 4;
    pack_along(f.keys, row_of(h, at->k, 0), at->kv_step, h->keys, at->size);
    pack_along(f.values, row_of(h, at->v, 0), at->kv_step, h->keys, at->size);
    for (int64_t i0 = 0; i0 < h->queries; i0 += TILE_COLUMNS) {
        const int64_t count = smaller(TILE_COLUMNS, h->queries - i0), columns = whole_columns(count);
        float shift[TILE_COLUMNS], inv[TILE_COLUMNS];
        pack_rows(f.queries, TILE_COLUMNS, query_of(h, i0), at->q_step, count, at->size);
        forward_scores(h, &f, i0, columns, seen(h, i0 + count - 1));
        for (int64_t i = 0; i < count; i += VW) {
            const int64_t last = smaller(i + VW, count) - 1;
            struct softmax s;
            int32_t block[VW];
            float bits[VW];
            for (int64_t q = 0; q < VW; q++)
                block[q] =
                    (int32_t)(uint32_t)((uint64_t)(h->number * h->queries + i0 + i + q) * (uint64_t)blocks);
            memcpy(bits, block, sizeof bits);
            s.block = v_bits(v_load(bits));
            if (at->window > 0)
                forward_softmax_window(h, f.scores + i, i0 + i, i0 + last, &s);
            else
                forward_softmax(h, f.scores + i, seen(h, i0 + i), seen(h, i0 + last), &s);
            v_store(shift + i, s.shift);
            v_store(inv + i, s.inv);
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t place = (h->row + i0 + i) * at->heads + h->number;
            at->shift[place] = shift[i];
            at->inv[place] = inv[i];
        }
        forward_values(h, &f, a->y, i0, count, inv);
    }
}

tr_status CPU_KERNEL(attention_forward)(tr_device *device, const struct tr_op_attention_forward *a)
{
    const int64_t floats = forward_floats(attention_keys(&a->at), a->at.size);
    return attention_run(device, &a->at, 2, floats, 1, forward_head, a);
}

/* ---- all heads ---- */

/* Heads are counted over the examples. A part is the heads of neighbouring examples. Other operations give
   the rows of these examples to the same member, so they are in its caches; and no other member writes to
   the cache lines that the heads of an example share. */
struct part {
    _Alignas(CPU_ALIGN) _Atomic int64_t next;
    int64_t end;
};

struct run {
    const struct cpu_device *cpu;
    const struct tr_attention *at;
    int64_t together;
    attention_head function;
    const void *arguments;
    struct part *part; /* [threads] */
};

/* Sets head `index`, counted over all examples. */
static void choose_head(const struct tr_attention *at, int64_t index, struct head *h)
{
    const int64_t example = index / at->heads;
    h->number = index % at->heads;
    h->kv_number = h->number / (at->heads / at->kv_heads);
    h->row = at->offset[example];
    h->key = at->key_offset[example];
    h->queries = at->offset[example + 1] - h->row;
    h->keys = at->key_offset[example + 1] - h->key;
    h->before = h->keys - h->queries;
    h->example = at->first_example + (uint32_t)example;
}

static void run_member(void *arguments, int member, int size)
{
    const struct run *run = arguments;
    const struct tr_attention *at = run->at;
    const int threads = run->cpu->base.threads;
    struct head h = {.at = at}, following = {.at = at};
    (void)size;
    if (at->rate > 0) h.mask = mask_of(at->key, at->scalars->step, at->layer, at->rate);
    for (int i = 0; i < threads;) {
        struct part *part = &run->part[(member + i) % threads]; /* its own part, then heads left by other
                                                                   members */
        const int64_t next = atomic_fetch_add_explicit(&part->next, 1, memory_order_relaxed);
        if (next >= part->end) {
            i++;
            continue;
        }
        for (int64_t index = next * run->together; index < (next + 1) * run->together; index++) {
            choose_head(at, index, &h);
            h.next = NULL;
            if (index + 1 < part->end * run->together) {
                choose_head(at, index + 1, &following);
                h.next = &following;
            }
            if (h.queries > 0) run->function(run->arguments, &h, cpu_scratch(run->cpu, member));
        }
    }
}

tr_status attention_run(tr_device *device, const struct tr_attention *at, int products, int64_t floats,
                        int64_t together, attention_head function, const void *arguments)
{
    struct cpu_device *cpu = cpu_device_of(device);
    struct run run = {
        .cpu = cpu, .at = at, .together = together, .function = function, .arguments = arguments};
    const int64_t parts_of_example = at->heads / together;
    const int64_t grain = at->examples < cpu->base.threads ? 1 : parts_of_example;
    const size_t parts = (size_t)cpu->base.threads * sizeof *run.part;
    double scores = 0;
    for (int64_t e = 0; e < at->examples; e++)
        scores +=
            (double)(at->key_offset[e + 1] - at->key_offset[e]) * (double)(at->offset[e + 1] - at->offset[e]);
    if (scores == 0) return TR_OK;
    TR_TRY(cpu_reserve(cpu, (size_t)floats * sizeof(float), parts));
    run.part = cpu_shared(cpu);
    for (int i = 0; i < cpu->base.threads; i++) {
        int64_t begin;
        tr_team_chunk(at->examples * parts_of_example, grain, i, cpu->base.threads, &begin, &run.part[i].end);
        atomic_init(&run.part[i].next, begin);
    }
    cpu_run(cpu, scores * (double)(at->heads * at->size) * products / (8.0 * VW), run_member, &run);
    return TR_OK;
}
