/* Draws of examples by class, with replacement: which example stands at a position of an epoch follows from
 * the seed, the epoch and the position alone, as in every order (data/order/order.h).
 *
 *     w = philox(key(seed, TR_RNG_SAMPLE), epoch, position low, position high, 0)
 *     class: the first whose bound is above w[0]; bounds are the running sums of the shares times 2^32
 *     example: number floor((w[1] * 2^32 + w[2]) * n / 2^64) of the n of that class, as stored
 */
#ifndef TR_DATA_SAMPLER_H
#define TR_DATA_SAMPLER_H

#include "base/numbers/rng.h"
#include "data/source.h"

typedef struct tr_sampler tr_sampler;

/* Reads all labels of a source with classes. `shares` [count], in proportion to which classes are drawn:
   not negative, and at least one above 0. NULL: the same share for each class that has examples. TR_EINVAL
   for a source without classes, a number of shares other than that of classes, and a positive share for a
   class without examples. Returned, destroy with tr_sampler_destroy(). */
tr_status tr_sampler_create(const tr_source *source, const float *shares, int32_t count, tr_sampler **out);
/* Accepts NULL, nulls the handle. */
void tr_sampler_destroy(tr_sampler **sampler);

/* The example at `position` of `epoch`; `key` is that of TR_RNG_SAMPLE. Any thread. */
int64_t tr_sampler_draw(const tr_sampler *sampler, tr_rng_key key, uint32_t epoch, uint64_t position);

#endif
