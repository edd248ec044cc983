/* One source as two: an example belongs to the first part or to the second by its place in a keyed
 * permutation of all examples, so that the parts follow from a seed and the number of examples alone.
 *
 *     position p of [0, count) is example tr_rng_permute(key(seed, TR_RNG_SPLIT), 0, count, p) of the whole;
 *     the second part has the last positions, `share` of all, rounded, at least one and never all.
 *
 * Both read from the whole, which lives as long as one of them.
 */
#ifndef TR_DATA_SPLIT_H
#define TR_DATA_SPLIT_H

#include "data/source.h"

/* The first part; `whole` is taken, also after a failure. 0 < share < 1. TR_EINVAL where there are fewer than
   two examples. Returned, close with tr_source_close(). */
tr_status tr_split_first(tr_source *whole, uint64_t seed, double share, tr_source **out);
/* The second part of what tr_split_first() made. Likewise. */
tr_status tr_split_second(const tr_source *first, tr_source **out);

#endif
