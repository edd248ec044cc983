#include "data/text/token_ids.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/npy.h"

#include <inttypes.h>
#include <string.h>

/* The layout of numbers in a file. */
struct form {
    const uint8_t *data;
    int64_t count;
    int bytes; /* of a number */
    bool is_signed, big_endian;
};

static tr_status read_array(const char *path, const uint8_t *data, size_t size, struct form *form)
{
    static const struct {
        enum tr_dtype dtype;
        int bytes;
        bool is_signed;
    } types[] = {
        {TR_DTYPE_U8, 1, false}, {TR_DTYPE_U16, 2, false}, {TR_DTYPE_I16, 2, true}, {TR_DTYPE_U32, 4, false},
        {TR_DTYPE_I32, 4, true}, {TR_DTYPE_U64, 8, false}, {TR_DTYPE_I64, 8, true},
    };
    struct tr_npy head;
    TR_TRY(tr_npy_parse(path, data, size, &head));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].dtype != head.dtype || head.rank != 1) continue;
        *form = (struct form){data + head.offset, head.shape[0], types[i].bytes, types[i].is_signed,
                              head.big_endian};
        return TR_OK;
    }
    return tr_fail(TR_EUNSUPPORTED, "%s: holds no integers in one dimension; save the tokens as such", path);
}

/* Number `index`; a negative one becomes a large one. */
static uint64_t number_at(const struct form *form, int64_t index)
{
    const uint8_t *at = form->data + index * form->bytes;
    uint64_t value = 0;
    for (int i = 0; i < form->bytes; i++)
        value |= (uint64_t)at[form->big_endian ? form->bytes - 1 - i : i] << (8 * i);
    bool negative = form->is_signed && value >> (8 * form->bytes - 1);
    return negative ? UINT64_MAX : value;
}

tr_status tr_token_ids_read(const char *path, const uint8_t *data, size_t size, int32_t ids, int32_t **tokens,
                            int64_t *count)
{
    struct form form = {data, (int64_t)(size / 2), 2, false, false};
    if (size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0)
        TR_TRY(read_array(path, data, size, &form));
    else if (size % 2)
        return tr_fail(TR_EFORMAT,
                       "%s: %zu bytes are no numbers of 16 bits; save the tokens so, or as a .npy file", path,
                       size);
    int32_t *numbers = tr_alloc((size_t)form.count + 1, sizeof *numbers);
    if (!numbers) return TR_ENOMEM;
    for (int64_t i = 0; i < form.count; i++) {
        const uint64_t number = number_at(&form, i);
        numbers[i] = (int32_t)number;
        if (number < (uint64_t)ids) continue;
        tr_free(numbers);
        if (number == UINT64_MAX) return tr_fail(TR_EFORMAT, "%s: token %" PRId64 " is negative", path, i);
        return tr_fail(TR_EFORMAT,
                       "%s: token %" PRId64 " is %" PRIu64 ", there are %" PRId32 " ids; set ids higher",
                       path, i, number, ids);
    }
    *tokens = numbers;
    *count = form.count;
    return TR_OK;
}
