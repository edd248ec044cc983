#include "io/histogram.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* The exponent of a float and the upper bits of its fraction give the bucket or the one before it: their
   steps of 1/32 are narrower than buckets, so one comparison decides. There is no branch on the numbers,
   since half of these would be mispredicted. */
#define FRACTION_BITS 5
#define SHIFT         (23 - FRACTION_BITS)
#define STARTS        (0x7f800000u >> SHIFT)

static struct {
    pthread_once_t once;
    double limit[TR_HISTOGRAM_SIDE]; /* the last one is open */
    uint16_t start[STARTS];
} scale = {.once = PTHREAD_ONCE_INIT};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void make_scale(void)
{
    double limit = 1e-12;
    for (int k = 0; k < TR_HISTOGRAM_LIMITS; k++, limit *= 1.1) scale.limit[k] = limit;
    assert(scale.limit[TR_HISTOGRAM_LIMITS - 1] < 1e20 && limit >= 1e20);
    scale.limit[TR_HISTOGRAM_LIMITS] = DBL_MAX;
    uint16_t k = 0;
    for (uint32_t i = 0; i < STARTS; i++) {
        while ((double)float_of(i << SHIFT) >= scale.limit[k]) k++;
        scale.start[i] = k;
    }
}

void tr_histogram_add(struct tr_histogram *histogram, const float *values, int64_t count)
{
    double min = histogram->count ? histogram->min : DBL_MAX,
           max = histogram->count ? histogram->max : -DBL_MAX, sum = 0, squares = 0;
    int64_t finite = 0, *const side[2] = {histogram->positive, histogram->negative};
    pthread_once(&scale.once, make_scale);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits, magnitude;
        memcpy(&bits, &values[i], sizeof bits);
        magnitude = bits & 0x7fffffffu;
        if (magnitude >= 0x7f800000u) continue;
        double value = (double)values[i], distance = fabs(value);
        int k = scale.start[magnitude >> SHIFT];
        k += distance >= scale.limit[k];
        side[bits >> 31 & (magnitude != 0)][k]++;
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += value;
        squares += value * value;
        finite++;
    }
    histogram->nonfinite += count - finite;
    if (finite == 0) return;
    histogram->count += finite;
    histogram->min = min;
    histogram->max = max;
    histogram->sum += sum;
    histogram->sum_squares += squares;
}

void tr_histogram_merge(struct tr_histogram *histogram, const struct tr_histogram *other)
{
    histogram->nonfinite += other->nonfinite;
    if (other->count == 0) return;
    bool first = histogram->count == 0;
    if (first || other->min < histogram->min) histogram->min = other->min;
    if (first || other->max > histogram->max) histogram->max = other->max;
    histogram->count += other->count;
    histogram->sum += other->sum;
    histogram->sum_squares += other->sum_squares;
    for (int k = 0; k < TR_HISTOGRAM_SIDE; k++) {
        histogram->negative[k] += other->negative[k];
        histogram->positive[k] += other->positive[k];
    }
}

/* A list of buckets being built. */
struct list {
    double *limit, *count;
    int32_t length, full; /* `full`: up to the last bucket that is not empty */
};

static void append(struct list *list, double limit, int64_t count)
{
    bool empty = count == 0;
    if (empty && list->length == 0) return;
    if (empty && list->length > list->full) list->length--;
    list->limit[list->length] = limit;
    list->count[list->length++] = (double)count;
    if (!empty) list->full = list->length;
}

int32_t tr_histogram_list(const struct tr_histogram *histogram, double limit[TR_HISTOGRAM_BUCKETS],
                          double count[TR_HISTOGRAM_BUCKETS])
{
    struct list list = {limit, count, 0, 0};
    pthread_once(&scale.once, make_scale);
    for (int k = TR_HISTOGRAM_SIDE - 1; k >= 0; k--)
        append(&list, k ? -scale.limit[k - 1] : 0, histogram->negative[k]);
    for (int k = 0; k < TR_HISTOGRAM_SIDE; k++) append(&list, scale.limit[k], histogram->positive[k]);
    return list.full;
}
