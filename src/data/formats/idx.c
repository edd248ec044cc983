#include "data/formats/idx.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "data/files/data_set.h"
#include "data/files/inflate.h"

#include <inttypes.h>
#include <string.h>

#define TYPE_BYTE 0x08

static const char *type_name(uint8_t type)
{
    switch (type) {
    case 0x08:
        return "unsigned bytes";
    case 0x09:
        return "signed bytes";
    case 0x0b:
        return "16-bit numbers";
    case 0x0c:
        return "32-bit numbers";
    case 0x0d:
        return "floats";
    case 0x0e:
        return "doubles";
    }
    return "an unknown type";
}

/* Reads magic and sizes. */
static tr_status read_header(const char *path, tr_inflate *inflate, struct tr_idx *idx)
{
    uint8_t head[4], sizes[4 * 4];
    TR_TRY(tr_inflate_exact(inflate, head, sizeof head, "the magic number"));
    if (head[0] != 0 || head[1] != 0) {
        return tr_fail(
            TR_EFORMAT,
            "%s: not an IDX file: starts with %02x %02x, not 00 00; give an IDX file, plain or gzip", path,
            head[0], head[1]);
    }
    if (head[2] != TYPE_BYTE) {
        return tr_fail(TR_EFORMAT, "%s: type %02x at offset 2 is %s; only 08, unsigned bytes, can be read",
                       path, head[2], type_name(head[2]));
    }
    if (head[3] < 1 || head[3] > 4) {
        return tr_fail(TR_EFORMAT, "%s: %d dimensions at offset 3; 1 to 4 can be read", path, head[3]);
    }
    idx->dimensions = head[3];
    TR_TRY(tr_inflate_exact(inflate, sizes, (size_t)idx->dimensions * 4, "the sizes"));
    idx->bytes = 1;
    for (int i = 0; i < 4; i++) {
        const uint8_t *at = sizes + 4 * i;
        idx->size[i] =
            i >= idx->dimensions
                ? 1
                : (int64_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
        if (idx->size[i] == 0) {
            return tr_fail(TR_EFORMAT, "%s: size 0 at offset %d: the set is empty", path, 4 + 4 * i);
        }
        if (__builtin_mul_overflow(idx->bytes, idx->size[i], &idx->bytes)) {
            return tr_fail(TR_EFORMAT, "%s: the sizes at offset 4 multiply to more than 2^63 bytes", path);
        }
    }
    return TR_OK;
}

/* Most bytes that a packed file of `size` bytes can hold: deflate makes at most 1032 bytes from one. */
static int64_t most_bytes(size_t size, enum tr_packing packing)
{
    int64_t most;
    if (packing == TR_PACKING_NONE) return (int64_t)size;
    return __builtin_mul_overflow((int64_t)size, (int64_t)1032, &most) ? INT64_MAX : most;
}

static tr_status read_mapped(const char *path, const uint8_t *data, size_t size, bool contents,
                             struct tr_idx *idx)
{
    tr_status status;
    tr_inflate *inflate;
    enum tr_packing packing =
        tr_packing_of(data, size) == TR_PACKING_GZIP ? TR_PACKING_GZIP : TR_PACKING_NONE;
    TR_TRY(tr_inflate_create(path, data, size, packing, &inflate));
    TR_TRY_GOTO(read_header(path, inflate, idx), out);
    if (idx->bytes > most_bytes(size, packing)) {
        status = tr_fail(TR_EFORMAT,
                         "%s: truncated: the sizes at offset 4 promise %" PRId64
                         " bytes, the file has %zu%s; get the file again",
                         path, idx->bytes, size, packing == TR_PACKING_NONE ? "" : " packed");
        goto out;
    }
    if (!contents) goto out;
    idx->data = tr_alloc_aligned((size_t)idx->bytes, 1);
    if (!idx->data) {
        status = TR_ENOMEM;
        goto out;
    }
    TR_TRY_GOTO(tr_inflate_exact(inflate, idx->data, (size_t)idx->bytes, "the contents"), out);
    TR_TRY_GOTO(tr_inflate_end(inflate), out);
out:
    tr_inflate_destroy(&inflate);
    if (status != TR_OK) tr_idx_free(idx);
    return status;
}

static tr_status read_file(const char *path, bool contents, struct tr_idx *idx)
{
    struct tr_file_map map;
    *idx = (struct tr_idx){0};
    TR_TRY(tr_data_map(path, &map));
    tr_status status = read_mapped(path, map.data, map.size, contents, idx);
    tr_file_unmap(&map);
    return status;
}

tr_status tr_idx_read(const char *path, struct tr_idx *idx)
{
    return read_file(path, true, idx);
}

tr_status tr_idx_read_sizes(const char *path, struct tr_idx *idx)
{
    return read_file(path, false, idx);
}

void tr_idx_free(struct tr_idx *idx)
{
    tr_free(idx->data);
    idx->data = NULL;
}
