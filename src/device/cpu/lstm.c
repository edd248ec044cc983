/* LSTM layers over ragged sequences.
 *
 * Sequences do not depend on each other, so a member takes a share of them with about as many tokens as the
 * others and walks it through time without meeting anybody. It sorts them by length and makes tiles of
 * sequences of similar length; at every step of time a tile is one small product with the packed recurrent
 * weights, its rows being the sequences that are still (or, backward, already) running: a prefix of the tile.
 */
#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/cpu/gradient.h"
#include "device/cpu/pack.h"
#include "device/cpu/tile.h"
#include "device/cpu/vec_math.h"

#include <stdbool.h>
#include <string.h>

/* Sequences that are sorted together. */
#define WINDOW 256

struct lstm {
    struct cpu_device *cpu;
    int64_t examples, hidden;
    const int32_t *offset;
    const struct tr_op_lstm_forward *forward; /* one of them */
    const struct tr_op_lstm_backward *backward;
    const float *w; /* [hidden][4 * hidden] */
    float *packed;  /* panels of w, or of its transpose: depth steps each */
    float *bias;    /* [4 * hidden], readable to the end of the last panel */
    int64_t depth, columns;
};

/* A tile of sequences, longest first. */
struct sequences {
    int64_t count;
    int64_t row[TILE_ROWS], length[TILE_ROWS]; /* first row and number of rows */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline vf load(const float *p, int64_t n)
{
    return n >= VW ? v_load(p) : v_load_part(p, n);
}

static inline void store(float *p, vf v, int64_t n)
{
    if (n >= VW)
        v_store(p, v);
    else
        v_store_part(p, v, n);
}

/* How many sequences of the tile have a row t. */
static int64_t running(const struct sequences *s, int64_t t)
{
    int64_t count = s->count;
    while (count > 0 && s->length[count - 1] <= t) count--;
    return count;
}

/* to[row][columns] = (from, or +0) + chain over depth of a[row] and the packed weights, + bias. `from` may be
   `to`. */
static void multiply(const struct lstm *l, const float *const *rows, int64_t count, float *a, bool resume,
                     float *to)
{
    const struct tile_segment segment = {.length = (int32_t)l->depth};
    struct tile tile = {.segments = &segment,
                        .count = 1,
                        .a = a,
                        .a_step = count,
                        .b_step = TILE_COLUMNS,
                        .from_step = l->columns,
                        .to_step = l->columns};
    pack_pointers(a, count, rows, count, l->depth);
    for (int64_t j = 0; j < l->columns; j += TILE_COLUMNS) {
        tile.b = l->packed + j * l->depth;
        tile.to = to + j;
        tile.from = resume ? tile.to : NULL;
        tile.columns = smaller(TILE_COLUMNS, l->columns - j);
        tile.bias = l->bias ? l->bias + j : NULL;
        tile_compute(count, &tile);
    }
}

/* One row of one sequence, forward: from the sums of its gates, bias included. */
static void forward_row(const struct tr_op_lstm_forward *op, const float *sum, int64_t row, bool first)
{
    const int64_t hidden = op->hidden;
    float *gates = op->gates + row * 4 * hidden, *c = op->c + row * hidden, *h = op->h + row * hidden;
    for (int64_t k = 0; k < hidden; k += VW) {
        const int64_t n = hidden - k;
        const vf i = v_sigmoid(load(sum + k, n)), f = v_sigmoid(load(sum + hidden + k, n));
        const vf g = v_tanh(load(sum + 2 * hidden + k, n)), o = v_sigmoid(load(sum + 3 * hidden + k, n));
        const vf input = v_mul(i, g);
        const vf cell = first ? input : v_fma(f, load(c - hidden + k, n), input);
        store(gates + k, i, n);
        store(gates + hidden + k, f, n);
        store(gates + 2 * hidden + k, g, n);
        store(gates + 3 * hidden + k, o, n);
        store(c + k, cell, n);
        store(h + k, v_mul(o, v_tanh(cell)), n);
    }
}

static void forward_tile(const struct lstm *l, const struct sequences *s, float *memory)
{
    const struct tr_op_lstm_forward *op = l->forward;
    const int64_t wide = 4 * op->hidden;
    float *sums = memory, *a = sums + TILE_ROWS * wide;
    const float *before[TILE_ROWS];
    for (int64_t t = 0; t < s->length[0]; t++) {
        const int64_t count = running(s, t);
        for (int64_t r = 0; r < count; r++) {
            const int64_t row = s->row[r] + t;
            const float *gates = op->gates + row * wide;
            if (t > 0) {
                before[r] = op->h + (row - 1) * op->hidden;
                memcpy(sums + r * wide, gates, (size_t)wide * sizeof(float));
            } else {
                for (int64_t j = 0; j < wide; j++) sums[r * wide + j] = gates[j] + l->bias[j];
            }
        }
        if (t > 0) multiply(l, before, count, a, true, sums);
        for (int64_t r = 0; r < count; r++) forward_row(op, sums + r * wide, s->row[r] + t, t == 0);
    }
}

/* One row of one sequence, backward. dh: what comes from the next row, or NULL; dc: the cell's gradient of
   the next row on entry, of this one on return. */
static void backward_row(const struct tr_op_lstm_backward *op, const float *dh, float *dc, int64_t row,
                         bool first)
{
    const int64_t hidden = op->hidden;
    const float *gates = op->gates + row * 4 * hidden, *c = op->c + row * hidden, *dy = op->dy + row * hidden;
    float *dgates = op->dgates + row * 4 * hidden;
    const vf one = v_set1(1.0f);
    for (int64_t k = 0; k < hidden; k += VW) {
        const int64_t n = hidden - k;
        const vf i = load(gates + k, n), f = load(gates + hidden + k, n);
        const vf g = load(gates + 2 * hidden + k, n), o = load(gates + 3 * hidden + k, n);
        vf dout = load(dy + k, n);
        if (dh) dout = v_add(dout, load(dh + k, n));
        const vf tc = v_tanh(load(c + k, n));
        const vf q = v_mul(dout, o), slope = v_fnma(tc, tc, one);
        const vf dcell =
            dh ? v_fma(q, slope, v_mul(load(dc + k, n), load(gates + 5 * hidden + k, n))) : v_mul(q, slope);
        const vf df =
            first ? v_zero() : v_mul(v_mul(dcell, load(c - hidden + k, n)), v_mul(f, v_sub(one, f)));
        store(dgates + k, v_mul(v_mul(dcell, g), v_mul(i, v_sub(one, i))), n);
        store(dgates + hidden + k, df, n);
        store(dgates + 2 * hidden + k, v_mul(v_mul(dcell, i), v_fnma(g, g, one)), n);
        store(dgates + 3 * hidden + k, v_mul(v_mul(dout, tc), v_mul(o, v_sub(one, o))), n);
        store(dc + k, dcell, n);
    }
}

static void backward_tile(const struct lstm *l, const struct sequences *s, float *memory)
{
    const struct tr_op_lstm_backward *op = l->backward;
    const int64_t hidden = op->hidden;
    float *dh = memory, *dc = dh + TILE_ROWS * hidden, *a = dc + TILE_ROWS * hidden;
    const float *after[TILE_ROWS];
    for (int64_t t = s->length[0] - 1; t >= 0; t--) {
        const bool cut = op->truncate > 0 && (t + 1) % op->truncate == 0;
        const int64_t count = running(s, t), next = cut ? 0 : running(s, t + 1);
        for (int64_t r = 0; r < next; r++) after[r] = op->dgates + (s->row[r] + t + 1) * 4 * hidden;
        if (next > 0) multiply(l, after, next, a, false, dh);
        for (int64_t r = 0; r < count; r++)
            backward_row(op, r < next ? dh + r * hidden : NULL, dc + r * hidden, s->row[r] + t, t == 0);
    }
}

/* The example whose first row is the first at or beyond part `index` of all rows. */
static int64_t share_begin(const struct lstm *l, int64_t index, int64_t parts)
{
    const int64_t begin = l->offset[0], rows = l->offset[l->examples] - begin;
    const int64_t wanted = begin + rows * index / parts;
    int64_t low = 0, high = l->examples;
    if (index == parts) return high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (l->offset[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Packs a member's share of the weights. */
static void pack_weights(void *arguments, int member, int size)
{
    const struct lstm *l = arguments;
    int64_t begin, end;
    if (l->forward) {
        tr_team_share(l->depth, 1, member, size, &begin, &end);
        pack_panels(l->packed + begin * TILE_COLUMNS, l->depth * TILE_COLUMNS, l->w + begin * l->columns,
                    l->columns, l->columns, end - begin);
        return;
    }
    tr_team_share(l->columns, TILE_COLUMNS, member, size, &begin, &end);
    for (int64_t j = begin; j < end; j += TILE_COLUMNS)
        pack_rows(l->packed + j * l->depth, TILE_COLUMNS, l->w + j * l->depth, l->depth,
                  smaller(TILE_COLUMNS, l->columns - j), l->depth);
}

static void walk(void *arguments, int member, int size)
{
    const struct lstm *l = arguments;
    float *memory = cpu_scratch(l->cpu, member);
    const int64_t end = share_begin(l, member + 1, size);
    for (int64_t example = share_begin(l, member, size); example < end;) {
        /* Sorted by falling length, by insertion; sequences without rows have nothing to do. */
        int32_t order[WINDOW];
        int64_t count = 0;
        for (; example < end && count < WINDOW; example++) {
            const int32_t length = l->offset[example + 1] - l->offset[example];
            if (length <= 0) continue;
            int64_t at = count++;
            for (; at > 0 && l->offset[order[at - 1] + 1] - l->offset[order[at - 1]] < length; at--)
                order[at] = order[at - 1];
            order[at] = (int32_t)example;
        }
        const int64_t tiles = tile_count(count);
        for (int64_t tile = 0; tile < tiles; tile++) {
            const int64_t first = tile_first(count, tiles, tile);
            struct sequences s = {.count = tile_first(count, tiles, tile + 1) - first};
            for (int64_t r = 0; r < s.count; r++) {
                s.row[r] = l->offset[order[first + r]];
                s.length[r] = l->offset[order[first + r] + 1] - s.row[r];
            }
            (l->forward ? forward_tile : backward_tile)(l, &s, memory);
        }
    }
}

/* Lays out the scratch and runs the walk; `member_floats` is what a tile needs besides its packed rows. */
static tr_status run(struct lstm *l, const float *bias, int64_t member_floats)
{
    if (l->examples == 0 || l->hidden == 0) return TR_OK;
    const int64_t padded = divide_up(l->columns, TILE_COLUMNS) * TILE_COLUMNS;
    const size_t packed_bytes = cpu_round((size_t)(padded * l->depth + PACK_SLACK) * sizeof(float));
    TR_TRY(cpu_reserve(l->cpu, (size_t)(member_floats + TILE_ROWS * l->depth + PACK_SLACK) * sizeof(float),
                       packed_bytes + (size_t)padded * sizeof(float)));
    l->packed = cpu_shared(l->cpu);
    if (bias) {
        l->bias = l->packed + packed_bytes / sizeof(float);
        for (int64_t j = 0; j < padded; j++) l->bias[j] = j < l->columns ? bias[j] : 0.0f;
    }
    const double rows = (double)(l->offset[l->examples] - l->offset[0]);
    cpu_run(l->cpu, (double)l->depth * (double)l->columns, pack_weights, l);
    cpu_run(l->cpu, rows * (double)l->depth * (double)l->columns / (8.0 * VW), walk, l);
    return TR_OK;
}

tr_status CPU_KERNEL(lstm_forward)(tr_device *device, const struct tr_op_lstm_forward *a)
{
    struct lstm l = {.cpu = cpu_device_of(device),
                     .examples = a->examples,
                     .hidden = a->hidden,
                     .offset = a->offset,
                     .forward = a,
                     .w = a->w,
                     .depth = a->hidden,
                     .columns = 4 * a->hidden};
    return run(&l, a->b, TILE_ROWS * 4 * a->hidden);
}

tr_status CPU_KERNEL(lstm_backward)(tr_device *device, const struct tr_op_lstm_backward *a)
{
    struct lstm l = {.cpu = cpu_device_of(device),
                     .examples = a->examples,
                     .hidden = a->hidden,
                     .offset = a->offset,
                     .backward = a,
                     .w = a->w,
                     .depth = 4 * a->hidden,
                     .columns = a->hidden};
    return run(&l, NULL, TILE_ROWS * 2 * a->hidden);
}

tr_status CPU_KERNEL(lstm_backward_weights)(tr_device *device, const struct tr_op_lstm_backward_weights *a)
{
    const struct gradient gradient = {.height = a->hidden,
                                      .width = 4 * a->hidden,
                                      .a = a->h,
                                      .b = a->dgates,
                                      .offset = a->offset,
                                      .cut = &a->cut,
                                      .to = a->dw};
    return gradient_compute(cpu_device_of(device), &gradient);
}
