#include "plan/costs.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOTES 255 /* of a key: means over steps; later ones take the place of earlier ones */

struct cost {
    struct tr_cost_key key;
    double sum; /* of the calls of this step */
    int64_t calls, notes;
    double note[NOTES];
    double seconds; /* their median */
};

struct tr_costs {
    struct cost *cost; /* [count]; settled: by operation, shape and size */
    int64_t count;
};

tr_status tr_costs_create(tr_costs **out)
{
    *out = tr_alloc_zero(1, sizeof **out);
    return *out ? TR_OK : TR_ENOMEM;
}

void tr_costs_destroy(tr_costs **handle)
{
    if (!*handle) return;
    tr_free((*handle)->cost);
    tr_free(*handle);
    *handle = NULL;
}

bool tr_costs_know(const tr_costs *costs, enum tr_cost_op op)
{
    for (int64_t i = 0; i < costs->count; i++)
        if (costs->cost[i].key.op == op) return true;
    return false;
}

bool tr_costs_know_fusions(const tr_costs *costs)
{
#define KNOWN(op)                                                                                            \
    if (tr_costs_know(costs, TR_COST_##op)) return true;
    TR_DEVICE_FUSIONS(KNOWN)
#undef KNOWN
    return false;
}

int64_t tr_costs_count(const tr_costs *costs)
{
    return costs->count;
}

static int compare_shapes(const struct tr_cost_key *a, const struct tr_cost_key *b)
{
    if (a->op != b->op) return a->op < b->op ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return memcmp(a->shape, b->shape, (size_t)a->bytes);
}

static int compare(const void *a_, const void *b_)
{
    const struct cost *a = a_, *b = b_;
    int shapes = compare_shapes(&a->key, &b->key);
    return shapes ? shapes : (a->key.size > b->key.size) - (a->key.size < b->key.size);
}

tr_status tr_costs_note(tr_costs *costs, const struct tr_cost_key *key, double seconds)
{
    struct cost *found = NULL;
    for (int64_t i = 0; i < costs->count && !found; i++)
        if (costs->cost[i].key.size == key->size && compare_shapes(&costs->cost[i].key, key) == 0)
            found = &costs->cost[i];
    if (!found) {
        if (!tr_grow(&costs->cost, costs->count, sizeof *costs->cost)) return TR_ENOMEM;
        found = &costs->cost[costs->count++];
        *found = (struct cost){.key = *key};
    }
    found->sum += seconds;
    found->calls++;
    return TR_OK;
}

void tr_costs_end_step(tr_costs *costs)
{
    for (int64_t i = 0; i < costs->count; i++) {
        struct cost *cost = &costs->cost[i];
        if (cost->calls == 0) continue;
        cost->note[cost->notes++ % NOTES] = cost->sum / (double)cost->calls;
        cost->sum = 0;
        cost->calls = 0;
    }
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tr_costs_settle(tr_costs *costs)
{
    tr_costs_end_step(costs);
    for (int64_t i = 0; i < costs->count; i++) {
        struct cost *cost = &costs->cost[i];
        size_t notes = (size_t)(cost->notes < NOTES ? cost->notes : NOTES);
        qsort(cost->note, notes, sizeof cost->note[0], compare_seconds);
        cost->seconds = (cost->note[(notes - 1) / 2] + cost->note[notes / 2]) / 2;
    }
    if (costs->count > 0) qsort(costs->cost, (size_t)costs->count, sizeof *costs->cost, compare);
}

/* On the line through two sizes; where it would fall below nothing, in proportion to the nearer one. */
static double on_line(const struct cost *a, const struct cost *b, int64_t size)
{
    double slope = (b->seconds - a->seconds) / (double)(b->key.size - a->key.size);
    double seconds = a->seconds + slope * (double)(size - a->key.size);
    const struct cost *nearest = size < a->key.size ? a : b;
    if (seconds > 0 && slope >= 0) return seconds;
    return nearest->seconds * (double)size / (double)(nearest->key.size > 0 ? nearest->key.size : 1);
}

/* Of a shape whose sizes are cost[first] to cost[end - 1]. */
static double of_shape(const struct cost *cost, int64_t first, int64_t end, int64_t size)
{
    int64_t above = first;
    while (above < end && cost[above].key.size < size) above++;
    if (above < end && cost[above].key.size == size) return cost[above].seconds;
    if (end - first == 1) {
        double measured = (double)(cost[first].key.size > 0 ? cost[first].key.size : 1);
        return cost[first].seconds * (double)size / measured;
    }
    if (above == first) above++;
    if (above == end) above--;
    return on_line(&cost[above - 1], &cost[above], size);
}

/* What goes with the time of calls whose shapes differ: products where these are known, else sizes. */
static double work_of(const struct tr_cost_key *key)
{
    double size = (double)(key->size > 0 ? key->size : 1);
    return key->volume > 0 ? key->volume * size : size;
}

/* In proportion to the call of the operation that does nearest as much. */
static double of_other_shape(const tr_costs *costs, const struct tr_cost_key *key)
{
    const struct cost *nearest = NULL;
    double least = INFINITY, work = work_of(key);
    for (int64_t i = 0; i < costs->count; i++) {
        const struct cost *cost = &costs->cost[i];
        double distance = fabs(log(work_of(&cost->key) / work));
        if (cost->key.op != key->op || distance >= least) continue;
        least = distance;
        nearest = cost;
    }
    return nearest ? nearest->seconds * work / work_of(&nearest->key) : 0;
}

double tr_costs_of(const tr_costs *costs, const struct tr_cost_key *key)
{
    int64_t low = 0, high = costs->count, end;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (compare_shapes(&costs->cost[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < costs->count && compare_shapes(&costs->cost[end].key, key) == 0;) end++;
    return end > low ? of_shape(costs->cost, low, end, key->size) : of_other_shape(costs, key);
}
