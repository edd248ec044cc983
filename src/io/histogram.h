/* Histograms of many numbers at once: counts by magnitude, and the moments.
 *
 * Bucket limits are 1e-12 * 1.1^k up to 1e20, mirrored for negative numbers, as TensorFlow's: parameters
 * and gradients have most of their values near zero, and long tails. A magnitude belongs to the bucket
 * with limit below <= |x| < limit, so zero counts with the smallest positive numbers. Counts do not depend
 * on how the numbers are grouped into calls; sums differ at most in rounding.
 */
#ifndef TR_IO_HISTOGRAM_H
#define TR_IO_HISTOGRAM_H

#include <stdint.h>

#define TR_HISTOGRAM_LIMITS 774                       /* 1e-12 * 1.1^773 is the last one below 1e20 */
#define TR_HISTOGRAM_SIDE   (TR_HISTOGRAM_LIMITS + 1) /* buckets of one sign; the last one is open */

/* Plain memory; all zeros is the empty histogram. */
struct tr_histogram {
    int64_t count;     /* of finite numbers; all members below are of these */
    int64_t nonfinite; /* NaN and infinite: only counted */
    double min, max, sum, sum_squares;
    int64_t negative[TR_HISTOGRAM_SIDE], positive[TR_HISTOGRAM_SIDE]; /* by magnitude, ascending */
};

/* Adds `count` numbers. Any thread, on different histograms. */
void tr_histogram_add(struct tr_histogram *histogram, const float *values, int64_t count);

/* Adds the numbers of another histogram. */
void tr_histogram_merge(struct tr_histogram *histogram, const struct tr_histogram *other);

/* The most buckets that tr_histogram_list() gives. */
#define TR_HISTOGRAM_BUCKETS (2 * TR_HISTOGRAM_SIDE)
/* Writes right edges, ascending, and counts of the buckets from the first to the last that is not empty; a
   run of empty ones between them is merged into one. Returns their number, 0 for an empty histogram. The
   last bucket is open: its edge is DBL_MAX. */
int32_t tr_histogram_list(const struct tr_histogram *histogram, double limit[TR_HISTOGRAM_BUCKETS],
                          double count[TR_HISTOGRAM_BUCKETS]);

#endif
