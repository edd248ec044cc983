#include "data/formats/tfrecord.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/files/data_set.h"
#include "data/files/lines.h"

#include <inttypes.h>
#include <unistd.h>

static uint32_t u32_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* A plain file is recognized by the checksum of its first length. */
static enum tr_packing packing_of(const uint8_t *data, size_t size)
{
    if (size >= TR_RECORD_HEAD && tr_record_checksum(data, 8) == u32_at(data + 8)) return TR_PACKING_NONE;
    return tr_packing_of(data, size);
}

bool tr_record_file_is_packed(const char *path)
{
    uint8_t head[TR_RECORD_HEAD];
    int descriptor;
    uint64_t size;
    if (tr_file_open(path, &descriptor, &size) != TR_OK) return false;
    size_t known = size < sizeof head ? (size_t)size : sizeof head;
    bool packed = tr_file_read_at(descriptor, path, 0, head, known) == TR_OK &&
                  packing_of(head, known) != TR_PACKING_NONE;
    close(descriptor);
    return packed;
}

tr_status tr_record_file_open(char *path, int packing, struct tr_record_file *file)
{
    struct tr_file_map map;
    *file = (struct tr_record_file){.path = path};
    TR_TRY(tr_data_map(path, &map));
    if (map.size == 0) {
        tr_file_unmap(&map);
        return tr_fail(TR_EFORMAT, "%s: the file is empty", path);
    }
    file->map = file->data = map.data;
    file->size = map.size;
    if (packing < 0) packing = packing_of(map.data, map.size);
    if (packing == TR_PACKING_NONE) return TR_OK;

    tr_inflate *inflate;
    TR_TRY(tr_inflate_create(path, map.data, map.size, (enum tr_packing)packing, &inflate));
    tr_status status = tr_inflate_all(inflate, TR_UNPACKED_MAX, NULL, NULL, &file->unpacked, &file->size);
    tr_inflate_destroy(&inflate);
    tr_file_unmap(&map);
    file->map = NULL;
    file->data = file->unpacked;
    return status;
}

void tr_record_file_close(struct tr_record_file *file)
{
    struct tr_file_map map = {.data = file->map, .size = file->size};
    if (file->map) tr_file_unmap(&map);
    tr_free(file->unpacked);
    tr_free(file->path);
    *file = (struct tr_record_file){0};
}

tr_status tr_record_at(const struct tr_record_file *file, uint64_t offset, bool check, const uint8_t **data,
                       size_t *size, enum tr_record_fault *fault)
{
    const char *unpacked = file->unpacked ? " (unpacked)" : "";
    const uint8_t *head = file->data + offset;
    uint64_t left = file->size - offset;
    *fault = TR_RECORD_BAD_LENGTH;
    if (left < TR_RECORD_HEAD) {
        return tr_fail(TR_EFORMAT,
                       "%s: truncated at offset %zu%s: a record starts at %" PRIu64 "; get the file again",
                       file->path, file->size, unpacked, offset);
    }
    uint32_t stored = u32_at(head + 8), computed = tr_record_checksum(head, 8);
    if (stored != computed) {
        return tr_fail(TR_ECORRUPT,
                       "%s: record at offset %" PRIu64 "%s: checksum of the length is %08" PRIx32
                       ", stored is "
                       "%08" PRIx32 "; get the file again, or set on_bad_record: skip to go without the rest",
                       file->path, offset, unpacked, computed, stored);
    }
    uint64_t length = (uint64_t)u32_at(head) | (uint64_t)u32_at(head + 4) << 32;
    if (left < TR_RECORD_OVERHEAD || length > left - TR_RECORD_OVERHEAD) {
        return tr_fail(TR_EFORMAT,
                       "%s: truncated at offset %zu%s: the record at %" PRIu64 " has %" PRIu64
                       " bytes of data; get "
                       "the file again",
                       file->path, file->size, unpacked, offset, length);
    }
    *data = head + TR_RECORD_HEAD;
    *size = (size_t)length;
    *fault = TR_RECORD_GOOD;
    if (!check) return TR_OK;
    stored = u32_at(*data + length);
    computed = tr_record_checksum(*data, *size);
    if (stored == computed) return TR_OK;
    *fault = TR_RECORD_BAD_DATA;
    return tr_fail(TR_ECORRUPT,
                   "%s: record at offset %" PRIu64 "%s: checksum of the data is %08" PRIx32
                   ", stored is %08" PRIx32 "; get the file again, or set on_bad_record: skip",
                   file->path, offset, unpacked, computed, stored);
}
