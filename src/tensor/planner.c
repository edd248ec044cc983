#include "tensor/planner.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>

static size_t rounded(size_t bytes)
{
    return (bytes + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE;
}

static bool overlap(const struct tr_interval *a, const struct tr_interval *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Largest first; ties by position, so that the plan does not depend on the sort. */
static int by_size(const void *left, const void *right)
{
    const struct tr_interval *a = *(struct tr_interval *const *)left,
                             *b = *(struct tr_interval *const *)right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a < b ? -1 : 1;
}

static int by_offset(const void *left, const void *right)
{
    const struct tr_interval *a = *(struct tr_interval *const *)left,
                             *b = *(struct tr_interval *const *)right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

tr_status tr_plan(struct tr_interval *intervals, size_t count, size_t *total)
{
    *total = 0;
    struct tr_interval **order = tr_alloc(count, sizeof *order);
    struct tr_interval **rivals = tr_alloc(count, sizeof *rivals);
    if (!order || !rivals) {
        tr_free(order);
        tr_free(rivals);
        return TR_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) order[i] = &intervals[i];
    qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; i < count; i++) {
        struct tr_interval *placed = order[i];
        placed->offset = 0;
        if (placed->bytes == 0) continue;
        size_t rival_count = 0;
        for (size_t j = 0; j < i; j++)
            if (overlap(order[j], placed)) rivals[rival_count++] = order[j];
        qsort(rivals, rival_count, sizeof *rivals, by_offset);
        for (size_t j = 0; j < rival_count; j++) {
            if (rivals[j]->offset >= placed->offset + rounded(placed->bytes)) break;
            size_t end = rivals[j]->offset + rounded(rivals[j]->bytes);
            if (end > placed->offset) placed->offset = end;
        }
        size_t end = placed->offset + rounded(placed->bytes);
        if (end > *total) *total = end;
    }
    tr_free(order);
    tr_free(rivals);
    return TR_OK;
}
