#include "base/tree.h"

static int cover(int64_t first, int64_t last, int64_t begin, int64_t end, int64_t *bounds, int nodes)
{
    if (begin >= last || end <= first) return nodes;
    if (begin <= first && last <= end) {
        bounds[nodes] = first;
        bounds[nodes + 1] = last;
        return nodes + 1;
    }
    int64_t left = 1;
    while (left * 2 < last - first) left *= 2;
    nodes = cover(first, first + left, begin, end, bounds, nodes);
    return cover(first + left, last, begin, end, bounds, nodes);
}

int tr_tree_cover(int64_t leaves, int64_t begin, int64_t end, int64_t *bounds)
{
    bounds[0] = begin;
    return begin < end ? cover(0, leaves, begin, end, bounds, 0) : 0;
}
