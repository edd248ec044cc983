#include "device/cpu/reduction.h"

int cpu_reduction_slots(const struct tr_cut *cut)
{
    int32_t most = 1;
    for (int32_t j = 0; j < cut->nodes; j++) {
        const int32_t leaves = cut->bound[j + 1] - cut->bound[j];
        most = leaves > most ? leaves : most;
    }
    int slots = 1;
    while (most >> slots) slots++;
    return slots;
}

/* Rows of the units [begin, end) of the cut. */
static int64_t rows_between(int64_t repeat, const int32_t *offset, int64_t begin, int64_t end)
{
    if (!offset) return (end - begin) * repeat;
    int64_t rows = 0;
    for (int64_t e = begin; e < end; e++)
        if (offset[e + 1] > offset[e]) rows += offset[e + 1] - offset[e] - 1;
    return rows;
}

int64_t cpu_reduction_rows(const struct tr_cut *cut, int64_t repeat, const int32_t *offset)
{
    return cut->count > 0 ? rows_between(repeat, offset, 0, cut->row[cut->count]) : 0;
}

void cpu_reduction_begin(struct reduction *reduction, const struct tr_cut *cut, int64_t repeat,
                         const int32_t *offset)
{
    *reduction = (struct reduction){.cut = cut, .repeat = repeat, .offset = offset, .top = -1};
    if (cut->nodes > 0) reduction->microbatch = cut->bound[0];
}

/* Ends the current node and begins the next. */
static void next_node(struct reduction *r)
{
    r->node++;
    r->top = -1;
    if (r->node < r->cut->nodes) r->microbatch = r->cut->bound[r->node];
}

int cpu_reduction_next(struct reduction *r, int64_t rows_max, struct reduction_piece pieces[REDUCTION_PIECES],
                       int64_t *rows)
{
    const struct tr_cut *cut = r->cut;
    int count = 0;
    *rows = 0;
    while (r->node < cut->nodes && count < REDUCTION_PIECES) {
        const int32_t begin = cut->bound[r->node], end = cut->bound[r->node + 1], i = r->microbatch;
        struct reduction_piece piece = {.row = *rows, .slot = -1, .node = r->node};
        if (begin == end) { /* an empty node is +0 */
            pieces[count++] = piece;
            next_node(r);
            continue;
        }
        const int64_t left = rows_between(r->repeat, r->offset, cut->row[i], cut->row[i + 1]) - r->done;
        const int64_t room = rows_max - *rows;
        if (left > 0 && room == 0) break;
        piece.rows = left < room ? left : room;
        piece.resume = r->done > 0;
        piece.fresh = r->top + 1;
        *rows += piece.rows;
        if (piece.rows < left) {
            piece.slot = piece.fresh;
            r->done += piece.rows;
        } else {
            const bool last = i + 1 == end;
            piece.lefts = last ? piece.fresh : tr_tree_combines_after(i - begin);
            r->top = piece.fresh - piece.lefts;
            if (!last) piece.slot = r->top;
            r->microbatch++;
            r->done = 0;
            if (last) next_node(r);
        }
        pieces[count++] = piece;
    }
    return count;
}
