/* Types and shapes of tensors outside the program. */
#include "io/safetensors.h"

#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [TR_DTYPE_F32] = {"F32", 4},   [TR_DTYPE_I32] = {"I32", 4},         [TR_DTYPE_I64] = {"I64", 8},
    [TR_DTYPE_U8] = {"U8", 1},     [TR_DTYPE_F64] = {"F64", 8},         [TR_DTYPE_F16] = {"F16", 2},
    [TR_DTYPE_BF16] = {"BF16", 2}, [TR_DTYPE_I8] = {"I8", 1},           [TR_DTYPE_I16] = {"I16", 2},
    [TR_DTYPE_U16] = {"U16", 2},   [TR_DTYPE_U32] = {"U32", 4},         [TR_DTYPE_U64] = {"U64", 8},
    [TR_DTYPE_BOOL] = {"BOOL", 1}, [TR_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [TR_DTYPE_F8_E5M2] = {"F8_E5M2", 1},
};
_Static_assert(sizeof types / sizeof types[0] == TR_DTYPE_COUNT, "every type has a name and a size");

const char *tr_dtype_name(enum tr_dtype dtype)
{
    return types[dtype].name;
}

size_t tr_dtype_size(enum tr_dtype dtype)
{
    return types[dtype].size;
}

tr_status tr_stored_bytes(const struct tr_stored_tensor *tensor, uint64_t *bytes)
{
    *bytes = tr_dtype_size(tensor->dtype);
    bool empty = false, overflow = false;
    for (int i = 0; i < tensor->rank; i++) {
        int64_t size = tensor->shape[i];
        if (size < 0) return tr_fail(TR_EINVAL, "dimension %d is %" PRId64, i, size);
        empty = empty || size == 0;
        overflow = overflow || __builtin_mul_overflow(*bytes, (uint64_t)(size ? size : 1), bytes);
    }
    if (overflow || *bytes > INT64_MAX) {
        char text[TR_STORED_TEXT];
        return tr_fail(TR_EINVAL, "%s has more bytes than 64 bits can count",
                       tr_stored_describe(tensor, text));
    }
    if (empty) *bytes = 0;
    return TR_OK;
}

bool tr_stored_alike(const struct tr_stored_tensor *a, const struct tr_stored_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

const char *tr_stored_describe(const struct tr_stored_tensor *tensor, char text[TR_STORED_TEXT])
{
    /* 8 sizes of at most 20 characters, with commas, and the type fit. */
    int length = snprintf(text, TR_STORED_TEXT, "%s[", tr_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++)
        length += snprintf(text + length, TR_STORED_TEXT - (size_t)length, "%s%" PRId64, i ? "," : "",
                           tensor->shape[i]);
    snprintf(text + length, TR_STORED_TEXT - (size_t)length, "]");
    return text;
}
