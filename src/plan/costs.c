#include "plan/costs.h"

#include "base/alloc.h"
#include "base/numbers/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes with fewer samples are merged, if they are within this factor of the smallest. */
#define SAMPLES_ENOUGH 16
#define NEAR           1.25

#define SAMPLES 255 /* of a key: means over steps; later ones replace earlier ones */

#define BUCKETS 1024

struct cost {
    struct tr_cost_key key;
    double sum; /* of the calls of this step */
    int64_t calls, samples;
    double *sample; /* [min(samples, SAMPLES)], and room for one more while calls > 0; owned, until settled */
    double seconds; /* their median */
    int64_t next;   /* in its bucket, plus 1; 0: none */
};

struct tr_costs {
    struct cost *cost; /* [count]; settled: by operation, shape and size */
    int64_t count;
    int64_t bucket[BUCKETS]; /* the last one in it, plus 1; 0: none. Until they are settled. */
    bool reads_rows;
};

tr_status tr_costs_create(tr_costs **out)
{
    *out = tr_alloc_zero(1, sizeof **out);
    return *out ? TR_OK : TR_ENOMEM;
}

void tr_costs_destroy(tr_costs **handle)
{
    if (!*handle) return;
    for (int64_t i = 0; i < (*handle)->count; i++) tr_free((*handle)->cost[i].sample);
    tr_free((*handle)->cost);
    tr_free(*handle);
    *handle = NULL;
}

void tr_costs_read_rows(tr_costs *costs, bool reads_rows)
{
    costs->reads_rows = reads_rows;
}

bool tr_costs_reads_rows(const tr_costs *costs)
{
    return costs->reads_rows;
}

bool tr_costs_know(const tr_costs *costs, enum tr_operation_number op)
{
    for (int64_t i = 0; i < costs->count; i++)
        if (costs->cost[i].key.op == op) return true;
    return false;
}

bool tr_costs_know_fusions(const tr_costs *costs)
{
#define KNOWN(op)                                                                                            \
    if (tr_costs_know(costs, TR_OPERATION_##op)) return true;
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

static int64_t *bucket_of(tr_costs *costs, const struct tr_cost_key *key)
{
    /* Sequences have keys of one shape with many sizes. */
    return &costs->bucket[(uint64_t)(key->size * 31 + (int64_t)key->op) % BUCKETS];
}

tr_status tr_costs_add(tr_costs *costs, const struct tr_cost_key *key, double seconds)
{
    int64_t *bucket = bucket_of(costs, key), at = *bucket;
    while (at > 0 &&
           (costs->cost[at - 1].key.size != key->size || compare_shapes(&costs->cost[at - 1].key, key) != 0))
        at = costs->cost[at - 1].next;
    if (at == 0) {
        if (!tr_grow(&costs->cost, costs->count, sizeof *costs->cost)) return TR_ENOMEM;
        costs->cost[costs->count] = (struct cost){.key = *key, .next = *bucket};
        *bucket = at = ++costs->count;
    }
    struct cost *found = &costs->cost[at - 1];
    if (found->calls == 0 && found->samples < SAMPLES &&
        !tr_grow(&found->sample, found->samples, sizeof *found->sample))
        return TR_ENOMEM;
    found->sum += seconds;
    found->calls++;
    return TR_OK;
}

void tr_costs_end_step(tr_costs *costs)
{
    for (int64_t i = 0; i < costs->count; i++) {
        struct cost *cost = &costs->cost[i];
        if (cost->calls == 0) continue;
        cost->sample[cost->samples++ % SAMPLES] = cost->sum / (double)cost->calls;
        cost->sum = 0;
        cost->calls = 0;
    }
}

static double median(double *value, int64_t count)
{
    tr_sort_doubles(value, (size_t)count);
    return (value[(count - 1) / 2] + value[count / 2]) / 2;
}

static int64_t kept_samples(const struct cost *cost)
{
    return cost->samples < SAMPLES ? cost->samples : SAMPLES;
}

/* How many of cost[first...], which have one shape, are merged: sizes with few samples close to the first. */
static int64_t neighbours(const struct tr_costs *costs, int64_t first)
{
    const struct cost *cost = costs->cost;
    int64_t samples = kept_samples(&cost[first]), next = first + 1;
    for (; next < costs->count && samples < SAMPLES_ENOUGH; next++) {
        if (compare_shapes(&cost[next].key, &cost[first].key) != 0) break;
        if ((double)cost[next].key.size > NEAR * (double)cost[first].key.size) break;
        if (kept_samples(&cost[next]) >= SAMPLES_ENOUGH) break;
        samples += kept_samples(&cost[next]);
    }
    return next - first;
}

/* The median time of a size, over the samples of some neighbours, at their mean size; replaces the first. */
static void join(struct cost *cost, int64_t count)
{
    double rate[2 * SAMPLES_ENOUGH], sizes = 0;
    int64_t rates = 0;
    if (count == 1) {
        cost->seconds = median(cost->sample, kept_samples(cost));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double size = (double)(cost[i].key.size > 0 ? cost[i].key.size : 1);
        for (int64_t j = 0; j < kept_samples(&cost[i]); j++) {
            rate[rates++] = cost[i].sample[j] / size;
            sizes += size;
        }
    }
    cost->key.size = (int64_t)(sizes / (double)rates + 0.5);
    cost->seconds = (double)cost->key.size * median(rate, rates);
}

void tr_costs_settle(tr_costs *costs)
{
    int64_t kept = 0;
    tr_costs_end_step(costs);
    if (costs->count > 0) qsort(costs->cost, (size_t)costs->count, sizeof *costs->cost, compare);
    for (int64_t i = 0, next; i < costs->count; i = next) {
        next = i + neighbours(costs, i);
        join(&costs->cost[i], next - i);
        for (int64_t j = i; j < next; j++) tr_free(costs->cost[j].sample);
        costs->cost[i].sample = NULL;
        costs->cost[kept++] = costs->cost[i];
    }
    costs->count = kept;
}

/* On the line through two sizes; where it would be negative, in proportion to the nearer one. */
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

/* A measure that calls of different shapes are compared by. */
static double work_of(const struct tr_cost_key *key)
{
    double size = (double)(key->size > 0 ? key->size : 1);
    return key->volume > 0 ? key->volume * size : size;
}

/* In proportion to the call of the operation with the nearest amount of work. */
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
