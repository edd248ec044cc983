/* Splits one source in two. Which part an example belongs to depends only on a seed, the number of
 * examples and, where parts are stratified, their classes.
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
 * so that the folds of a seed have each example exactly once. Per class, a part's number of examples
 * differs by less than one from its share of that class.
 *
 * Both read from the whole, which is closed with the last of them.
 */
#ifndef TR_DATA_SPLIT_H
#define TR_DATA_SPLIT_H

#include "data/source.h"

struct tr_split {
    uint64_t seed;
    double share;        /* of the second part, above 0 and below 1; ignored with folds */
    int32_t folds, fold; /* folds > 1: the fold, from 1, that is the second part; folds 0: by share */
    bool stratified;     /* stratified by class */
};

/* The first part; `whole` is taken, also after a failure. TR_EINVAL where there are fewer than two
   examples, or fewer than folds, or no classes to stratify by; TR_ENOMEM; errors of reading labels.
   Returned, close with tr_source_close(). */
tr_status tr_split_first(tr_source *whole, const struct tr_split *split, tr_source **out);
/* The second part of a source whose first part is `first`. Likewise. */
tr_status tr_split_second(const tr_source *first, tr_source **out);

#endif
