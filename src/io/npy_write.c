#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "io/npy.h"
#include "io/zip.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data are written as they lie in memory");

#define GRAIN 64 /* NumPy's alignment of the data */

/* NumPy's name of a type, NULL if it has none. */
static const char *description_of(enum tr_dtype dtype)
{
    switch (dtype) {
    case TR_DTYPE_F64:
        return "<f8";
    case TR_DTYPE_F32:
        return "<f4";
    case TR_DTYPE_F16:
        return "<f2";
    case TR_DTYPE_I64:
        return "<i8";
    case TR_DTYPE_I32:
        return "<i4";
    case TR_DTYPE_I16:
        return "<i2";
    case TR_DTYPE_I8:
        return "|i1";
    case TR_DTYPE_U64:
        return "<u8";
    case TR_DTYPE_U32:
        return "<u4";
    case TR_DTYPE_U16:
        return "<u2";
    case TR_DTYPE_U8:
        return "|u1";
    case TR_DTYPE_BOOL:
        return "|b1";
    default:
        return NULL;
    }
}

/* The dictionary, without padding. */
static tr_status make_dictionary(const struct tr_stored_tensor *tensor, char **out)
{
    const char *description = description_of(tensor->dtype);
    if (!description) return tr_fail(TR_EINVAL, "NumPy has no type %s", tr_dtype_name(tensor->dtype));
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", description);
    for (int i = 0; i < tensor->rank; i++) {
        /* A tuple of one has a comma. */
        const char *mark = i + 1 < tensor->rank ? ", " : tensor->rank == 1 ? "," : "";
        tr_text_addf(&text, "%" PRId64 "%s", tensor->shape[i], mark);
    }
    tr_text_add(&text, "), }");
    return tr_text_finish(&text, out);
}

tr_status tr_npy_header(const struct tr_stored_tensor *tensor, uint8_t **header, size_t *size)
{
    char *dictionary;
    uint64_t bytes;
    *header = NULL;
    TR_TRY(tr_stored_bytes(tensor, &bytes));
    TR_TRY(make_dictionary(tensor, &dictionary));
    /* Ten bytes before, a line feed after. Eight sizes of at most 20 digits fit version 1. */
    size_t length = strlen(dictionary), whole = (10 + length + 1 + GRAIN - 1) / GRAIN * GRAIN;
    assert(whole - 10 <= UINT16_MAX);
    uint8_t *made = tr_alloc(whole, 1);
    if (made) {
        memcpy(made, "\x93NUMPY\x01\x00", 8);
        made[8] = (uint8_t)((whole - 10) & 0xff);
        made[9] = (uint8_t)((whole - 10) >> 8);
        memcpy(made + 10, dictionary, length);
        memset(made + 10 + length, ' ', whole - 10 - length - 1);
        made[whole - 1] = '\n';
    }
    tr_free(dictionary);
    *header = made;
    *size = whole;
    return made ? TR_OK : TR_ENOMEM;
}

static tr_status add_array(struct tr_zip *zip, const struct tr_stored_tensor *tensor)
{
    uint8_t *header = NULL;
    size_t size;
    uint64_t bytes;
    char *name = tr_format("%s.npy", tensor->name);
    tr_status status = name ? tr_npy_header(tensor, &header, &size) : TR_ENOMEM;
    if (status == TR_OK) {
        tr_stored_bytes(tensor, &bytes); /* which the header has checked */
        const struct tr_zip_piece pieces[] = {{header, size}, {tensor->data, (size_t)bytes}};
        status = tr_zip_add(zip, name, pieces, 2);
    }
    tr_free(header);
    tr_free(name);
    return status;
}

tr_status tr_npz_replace(const tr_file_system *files, const char *path,
                         const struct tr_stored_tensor *tensors, int64_t count)
{
    struct tr_file_replacement file;
    TR_TRY(tr_file_replace_begin(files, path, 0, &file));
    struct tr_zip zip = TR_ZIP_INIT(&file.writer);
    tr_status status = TR_OK;
    for (int64_t i = 0; i < count && status == TR_OK; i++) {
        status = add_array(&zip, &tensors[i]);
        if (status == TR_EINVAL) tr_fail_in(status, "tensor \"%.200s\"", tensors[i].name);
    }
    if (status == TR_OK) status = tr_zip_finish(&zip);
    tr_zip_release(&zip);
    if (status == TR_OK) return tr_file_replace_finish(&file);
    tr_file_replace_abandon(&file);
    return status;
}
