/* The order of examples: the example at each position, computed from the seed alone.
 *
 * The only state of the input pipeline is the number of the step. An epoch visits every example once, in a
 * keyed permutation of (seed, epoch) or, unshuffled, as stored; a batch never spans two epochs. An order
 * that samples draws as many examples, by class and with replacement.
 */
#ifndef TR_DATA_ORDER_H
#define TR_DATA_ORDER_H

#include "base/numbers/rng.h"
#include "data/order/sampler.h"
#include "trireme/status.h"

#include <stdbool.h>

enum tr_last_batch {
    TR_LAST_BATCH_KEEP, /* the last batch of an epoch may be smaller */
    TR_LAST_BATCH_DROP  /* examples that do not fill a batch are left out in that epoch */
};

/* Filled by tr_order_make(); only read after that. */
struct tr_order {
    int64_t count;           /* examples */
    int64_t batch;           /* rows of a full global batch, at most count */
    int64_t steps_per_epoch; /* at least 1 */
    bool shuffle;
    tr_rng_key key;
    const tr_sampler
        *sampler; /* of an order that draws examples by class; set by tr_order_sample(), else NULL */
    tr_rng_key sample_key;
};

/* The batch of one step. */
struct tr_order_step {
    int64_t epoch; /* from 0 */
    int64_t first; /* position of the first row within the epoch */
    int64_t rows;  /* at most batch */
};

/* Any thread. TR_EINVAL for counts below 1, and for a set smaller than one batch when the last is dropped;
   a batch larger than the set is reduced to the set when the last is kept. */
tr_status tr_order_make(struct tr_order *order, int64_t count, int64_t batch, enum tr_last_batch last,
                        bool shuffle, uint64_t seed);

/* Makes an order draw its examples by a sampler, which is borrowed as long as the order is used. */
void tr_order_sample(struct tr_order *order, const tr_sampler *sampler, uint64_t seed);

/* Where `step` (from 0) lies. Pure. */
struct tr_order_step tr_order_at(const struct tr_order *order, int64_t step);

/* The example at `position` (below count) of `epoch`. Pure. */
int64_t tr_order_example(const struct tr_order *order, int64_t epoch, int64_t position);

/* An order, read epoch by epoch, many examples at a time. One thread at a time. */
struct tr_order_reader {
    struct tr_order order;
    struct tr_permutation permutation;
};

/* Copies the order. TR_ENOMEM. Release with tr_order_reader_release(), also after a failure. */
tr_status tr_order_reader_make(const struct tr_order *order, struct tr_order_reader *out);
void tr_order_reader_release(struct tr_order_reader *reader);

/* The examples at positions [first, first + count) of `epoch`, those of tr_order_example(), to index[count].
 */
void tr_order_read(struct tr_order_reader *reader, int64_t epoch, int64_t first, int64_t count,
                   int64_t *index);

#endif
