/* The shape of an example's data between two layers, or of a parameter. */
#ifndef TR_TENSOR_SHAPE_H
#define TR_TENSOR_SHAPE_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_MAX_RANK 4

struct tr_shape {
    int rank;
    int64_t size[TR_MAX_RANK];
    bool sequence; /* one such tensor for every token of the example, rather than one for the example */
};

/* One of several tensors of an example, with its name. */
#define TR_NAMED_SHAPE_NAME 64
struct tr_named_shape {
    char name[TR_NAMED_SHAPE_NAME];
    struct tr_shape shape;
};

/* The number of elements (of one token for sequences); 1 for rank 0. tr_shape_check() has checked that
   sizes are positive and their product fits. */
int64_t tr_shape_count(const struct tr_shape *shape);

/* TR_EINVAL unless all sizes are positive and the count is below 2^40; `what` names the thing in the message.
 */
tr_status tr_shape_check(const struct tr_shape *shape, const char *what);

bool tr_shape_equal(const struct tr_shape *a, const struct tr_shape *b);

#define TR_SHAPE_TEXT 96
/* Writes "28x28x1", "scalar", or "tokens x 128" to `text` (TR_SHAPE_TEXT bytes) and returns it. */
const char *tr_shape_text(const struct tr_shape *shape, char *text);

#endif
