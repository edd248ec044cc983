#include "tensor/shape.h"

#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT_LIMIT ((int64_t)1 << 40)

int64_t tr_shape_count(const struct tr_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->size[i];
    return count;
}

tr_status tr_shape_check(const struct tr_shape *shape, const char *what)
{
    char text[TR_SHAPE_TEXT];
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->size[i] <= 0)
            return tr_fail(TR_EINVAL,
                           "%s: shape %s has a size below 1; check kernel sizes, strides and padding", what,
                           tr_shape_text(shape, text));
        if (__builtin_mul_overflow(count, shape->size[i], &count) || count >= COUNT_LIMIT)
            return tr_fail(TR_EINVAL, "%s: shape %s has 2^40 elements or more", what,
                           tr_shape_text(shape, text));
    }
    return TR_OK;
}

bool tr_shape_equal(const struct tr_shape *a, const struct tr_shape *b)
{
    if (a->rank != b->rank || a->sequence != b->sequence) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->size[i] != b->size[i]) return false;
    return true;
}

const char *tr_shape_text(const struct tr_shape *shape, char *text)
{
    int used = snprintf(text, TR_SHAPE_TEXT, "%s", shape->sequence ? "tokens x " : "");
    for (int i = 0; i < shape->rank; i++)
        used +=
            snprintf(text + used, (size_t)(TR_SHAPE_TEXT - used), "%s%" PRId64, i ? "x" : "", shape->size[i]);
    if (shape->rank == 0) snprintf(text + used, (size_t)(TR_SHAPE_TEXT - used), "scalar");
    return text;
}
