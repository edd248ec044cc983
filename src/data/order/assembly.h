/* Assembly of batches: what of a source and an order makes the batch of a step.
 *
 * Rows of a batch are read one by one, by any thread and in any order; only those of tokens lie
 * where the one before ends, and are read in order.
 */
#ifndef TR_DATA_ASSEMBLY_H
#define TR_DATA_ASSEMBLY_H

#include "data/order/batch.h"

struct tr_assembly {
    const tr_source *source;
    struct tr_order_reader order;
    struct tr_loader_options options;
    int64_t capacity; /* rows of the largest batch */
    int64_t tokens;   /* tokens of the largest batch */
};

/* Memory of a batch; to be freed by tr_assembly_free() also after a failure. */
tr_status tr_assembly_alloc(const struct tr_assembly *assembly, struct tr_batch *batch);
void tr_assembly_free(struct tr_batch *batch);

/* Begins the batch of `step`: all but its rows. One thread at a time. */
void tr_assembly_begin(struct tr_assembly *assembly, int64_t step, struct tr_batch *batch);
/* Reads rows [begin, end) of a batch that was begun. Any thread, and several at a time on other rows. */
tr_status tr_assembly_read(const struct tr_assembly *assembly, int64_t begin, int64_t end,
                           struct tr_batch *batch);
/* Whether rows can be read by several threads, a few at a time, and take microseconds where their examples
   are in memory. */
bool tr_assembly_is_divisible(const struct tr_assembly *assembly);

#endif
