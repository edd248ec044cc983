/* Assembly of batches from a source and an order.
 *
 * Rows of a batch are read one by one, by any thread and in any order. Rows of tokens are the exception:
 * each begins where the last one ends, so they are read in order.
 */
#ifndef TR_DATA_ASSEMBLY_H
#define TR_DATA_ASSEMBLY_H

#include "data/order/batch.h"

struct tr_assembly {
    const tr_source *source;
    struct tr_order_reader order;
    struct tr_loader_options options;
    int64_t capacity;      /* rows of the largest batch */
    int64_t tokens;        /* tokens of the largest batch */
    int64_t second_tokens; /* the same of the second text, 0 without one */
};

/* Memory of a batch; to be freed by tr_assembly_free() also after a failure. */
tr_status tr_assembly_alloc(const struct tr_assembly *assembly, struct tr_batch *batch);
void tr_assembly_free(struct tr_batch *batch);

/* Begins the batch of `step`: sets all but its rows. One thread at a time. */
void tr_assembly_begin(struct tr_assembly *assembly, int64_t step, struct tr_batch *batch);
/* Reads rows [begin, end) of a batch that was begun. Any thread; several threads may read different rows. */
tr_status tr_assembly_read(const struct tr_assembly *assembly, int64_t begin, int64_t end,
                           struct tr_batch *batch);
/* Whether images are taken where they lie, so that only labels are read. */
bool tr_assembly_in_place(const struct tr_assembly *assembly);
/* Whether several threads can read rows, a few at a time, taking microseconds where the examples are in
   memory. */
bool tr_assembly_is_divisible(const struct tr_assembly *assembly);

#endif
