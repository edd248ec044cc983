/* One source as two: each example belongs to the first part or to the second, by a seed, the number of
 * examples and, where parts are stratified, their classes alone.
 *
 * Position p of [0, count) is example tr_rng_permute(key(seed, TR_RNG_SPLIT), 0, count, p) of the whole; both
 * parts have their examples in the order of positions. The second part has
 *
 *     by share:           the last positions, `share` of all, rounded, at least one and never all
 *     of folds:           positions [count * (fold - 1) / folds, count * fold / folds)
 *     by share, by class: with each example numbered j by class and then position, those where
 *                         (j + 1) * second / count and j * second / count differ, both rounded down;
 *                         second is the number that there would be without classes
 *     of folds, by class: those where j modulo folds is fold - 1
 *
 * so that the folds of a seed have all examples once, and the parts' numbers of a class differ from what
 * its share of the whole would be by less than one.
 *
 * Both read from the whole, which lives as long as one of them.
 */
#ifndef TR_DATA_SPLIT_H
#define TR_DATA_SPLIT_H

#include "data/source.h"

struct tr_split {
    uint64_t seed;
    double share;        /* of the second part, above 0 and below 1; with folds it means nothing */
    int32_t folds, fold; /* folds > 1, and which one is the second part, from 1; folds 0: by share */
    bool stratified;     /* by class */
};

/* The first part; `whole` is taken, also after a failure. TR_EINVAL where there are fewer than two examples,
   or than folds, or no classes to stratify by; TR_ENOMEM; what reading labels says. Returned, close with
   tr_source_close(). */
tr_status tr_split_first(tr_source *whole, const struct tr_split *split, tr_source **out);
/* The second part of what tr_split_first() made. Likewise. */
tr_status tr_split_second(const tr_source *first, tr_source **out);

#endif
