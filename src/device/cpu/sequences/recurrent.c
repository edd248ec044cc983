#include "device/cpu/sequences/recurrent.h"

#include "base/fail.h"
#include "device/cpu/grid.h"
#include "device/cpu/products/gradient.h"
#include "device/cpu/sizes.h"

/* Sequences that are sorted together. */
#define WINDOW 256

/* Makes a tile prefetch rows, spread evenly over its steps, a part of a line with each. Not for tiles of
   few rows, which have to fetch the weights. */
static void fetch_rows(const struct recurrent_soon *soon, int64_t count, int64_t depth, struct tile *tile)
{
    if (!soon->rows || count <= TILE_ROWS / 2) return;
    const int64_t step = divide_up(count * soon->width, depth), run = divide_up(soon->width, step);
    tile->next = tile_fetch(soon->rows, step, run, soon->step - run * step);
}

void recurrent_multiply(const struct recurrent *l, const struct recurrent_product *p)
{
    const struct tile_segment segment = {.length = (int32_t)l->depth};
    struct tile tile = {.segments = &segment,
                        .count = 1,
                        .a = p->a,
                        .a_step = p->count,
                        .b_step = TILE_COLUMNS,
                        .from_step = p->from_step,
                        .to_step = l->columns};
    pack_pointers(p->a, p->count, p->rows, p->count, l->depth);
    for (int64_t j = 0, panel = 0; j < l->columns; j += TILE_COLUMNS, panel++) {
        tile.b = l->packed + j * l->depth;
        tile.to = p->to + j;
        tile.from = p->from ? p->from + j : NULL;
        tile.columns = smaller(TILE_COLUMNS, l->columns - j);
        tile.bias = l->bias ? l->bias + j : NULL;
        tile.next.from = NULL;
        if (panel < p->soons) {
            fetch_rows(&p->soon[panel], p->count, l->depth, &tile);
        } else if (p->from && p->from != p->to && j + TILE_COLUMNS < l->columns) {
            const struct recurrent_soon from = {tile.from + TILE_COLUMNS, TILE_COLUMNS, p->from_step};
            fetch_rows(&from, p->count, l->depth, &tile);
        }
        tile_compute(p->count, &tile);
    }
}

/* The example with the first row at or after `wanted`. */
static int64_t example_at(const struct recurrent *l, int64_t wanted)
{
    int64_t low = 0, high = l->examples;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (l->offset[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Packs a member's chunk of the weights. */
static void pack_weights(void *arguments, int member, int size)
{
    const struct recurrent *l = arguments;
    int64_t begin, end;
    if (!l->transposed) {
        tr_team_chunk(l->depth, 1, member, size, &begin, &end);
        pack_panels(l->packed + begin * TILE_COLUMNS, l->depth * TILE_COLUMNS, l->w + begin * l->columns,
                    l->columns, l->columns, end - begin);
        return;
    }
    tr_team_chunk(l->columns, TILE_COLUMNS, member, size, &begin, &end);
    for (int64_t j = begin; j < end; j += TILE_COLUMNS)
        pack_rows(l->packed + j * l->depth, TILE_COLUMNS, l->w + j * l->depth, l->depth,
                  smaller(TILE_COLUMNS, l->columns - j), l->depth);
}

static void walk(void *arguments, int member, int size)
{
    const struct recurrent *l = arguments;
    float *memory = cpu_scratch(l->cpu, member);
    const int64_t begin = l->offset[0], rows = l->offset[l->examples] - begin;
    int64_t row, row_end;
    cpu_items(l->cpu->balance, rows, 1, member, size, &row, &row_end);
    const int64_t end = row_end == rows ? l->examples : example_at(l, begin + row_end);
    for (int64_t example = example_at(l, begin + row); example < end;) {
        /* Sorted by falling length, by insertion; sequences without rows need no work. */
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
                s.example[r] = order[first + r];
                s.row[r] = l->offset[order[first + r]];
                s.length[r] = l->offset[order[first + r] + 1] - s.row[r];
            }
            l->tile(l, &s, memory);
        }
    }
}

/* `member_floats` is the scratch of a tile besides its packed rows. */
static tr_status run(struct recurrent *l, int64_t member_floats)
{
    if (l->examples == 0 || l->depth == 0) return TR_OK;
    const int64_t padded = divide_up(l->columns, TILE_COLUMNS) * TILE_COLUMNS;
    const size_t packed_bytes = cpu_round((size_t)(padded * l->depth + PACK_SLACK) * sizeof(float));
    TR_TRY(cpu_reserve(l->cpu, (size_t)(member_floats + TILE_ROWS * l->depth + PACK_SLACK) * sizeof(float),
                       packed_bytes + (size_t)padded * sizeof(float)));
    l->packed = cpu_shared(l->cpu);
    if (l->added) {
        l->bias = l->packed + packed_bytes / sizeof(float);
        for (int64_t j = 0; j < padded; j++) l->bias[j] = j < l->columns ? l->added[j] : 0.0f;
    }
    const double rows = (double)(l->offset[l->examples] - l->offset[0]);
    cpu_run(l->cpu, (double)l->depth * (double)l->columns, pack_weights, l);
    cpu_run(l->cpu, rows * (double)l->depth * (double)l->columns / (8.0 * VW), walk, l);
    return TR_OK;
}

static struct recurrent walk_of(const struct recurrent_layer *layer, recurrent_tile tile, const void *op)
{
    return (struct recurrent){.cpu = cpu_device_of(layer->device),
                              .examples = layer->examples,
                              .offset = layer->offset,
                              .tile = tile,
                              .op = op,
                              .w = layer->w};
}

tr_status recurrent_forward(const struct recurrent_layer *layer, const float *bias, recurrent_tile tile,
                            const void *op)
{
    struct recurrent l = walk_of(layer, tile, op);
    l.added = bias;
    l.depth = layer->hidden;
    l.columns = layer->gates * layer->hidden;
    return run(&l, TILE_ROWS * l.columns);
}

tr_status recurrent_backward(const struct recurrent_layer *layer, recurrent_tile tile, const void *op)
{
    struct recurrent l = walk_of(layer, tile, op);
    l.transposed = true;
    l.depth = layer->gates * layer->hidden;
    l.columns = layer->hidden;
    return run(&l, TILE_ROWS * 2 * layer->hidden);
}

tr_status recurrent_weights(const struct recurrent_layer *layer, const float *h, const float *dgates,
                            const struct tr_cut *cut, float *dw)
{
    const struct gradient gradient = {.height = layer->hidden,
                                      .width = layer->gates * layer->hidden,
                                      .a = h,
                                      .b = dgates,
                                      .offset = layer->offset,
                                      .cut = cut,
                                      .to = dw};
    return gradient_compute(cpu_device_of(layer->device), &gradient);
}
