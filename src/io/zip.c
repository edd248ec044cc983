#include "io/zip.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"

#include <string.h>

#define DATE  0x0021 /* 1 January 1980 */
#define UTF_8 0x0800 /* the flag for names */
#define EXTRA 0x0001 /* the extra field of 64-bit numbers */

/* Versions of the format that a reader must know: directories and such; 64-bit records. */
#define VERSION      20
#define VERSION_WIDE 45

/* A record being built: numbers are little-endian. The longest fixed part has 56 bytes. */
struct record {
    uint8_t bytes[128];
    size_t size;
};

static void put(struct record *record, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) record->bytes[record->size++] = (uint8_t)(value >> 8 * i);
}

/* A 32-bit number, or all ones where a 64-bit record has it. */
static void put_32(struct record *record, const struct tr_zip *zip, uint64_t value)
{
    put(record, value < zip->wide ? value : UINT32_MAX, 4);
}

static tr_status write_record(const struct tr_zip *zip, const struct record *record)
{
    return tr_file_write(zip->writer, record->bytes, record->size);
}

/* The fields from the version to the length of the name, which both headers of a member have. The two
   sizes are equal, since nothing is packed. */
static void put_member(struct record *record, const struct tr_zip *zip, const struct tr_zip_member *member,
                       bool wide)
{
    put(record, wide ? VERSION_WIDE : VERSION, 2);
    put(record, UTF_8, 2);
    put(record, 0, 2); /* stored */
    put(record, 0, 2); /* time */
    put(record, DATE, 2);
    put(record, member->crc, 4);
    put_32(record, zip, member->bytes);
    put_32(record, zip, member->bytes);
    put(record, strlen(member->name), 2);
}

/* ---- members ---- */

static tr_status write_local(const struct tr_zip *zip, const struct tr_zip_member *member)
{
    bool wide = member->bytes >= zip->wide;
    struct record record = {.size = 0}, extra = {.size = 0};
    put(&record, 0x04034b50, 4);
    put_member(&record, zip, member, wide);
    put(&record, wide ? 20 : 0, 2);
    if (wide) {
        put(&extra, EXTRA, 2);
        put(&extra, 16, 2);
        put(&extra, member->bytes, 8);
        put(&extra, member->bytes, 8);
    }
    TR_TRY(write_record(zip, &record));
    TR_TRY(tr_file_write(zip->writer, member->name, strlen(member->name)));
    return write_record(zip, &extra);
}

static struct tr_zip_member *new_member(struct tr_zip *zip)
{
    return tr_grow(&zip->member, zip->count, sizeof *zip->member) ? &zip->member[zip->count] : NULL;
}

tr_status tr_zip_add(struct tr_zip *zip, const char *name, const struct tr_zip_piece *pieces, int count)
{
    if (strlen(name) >= UINT16_MAX)
        return tr_fail(TR_EINVAL, "a member of a zip archive cannot have a name of %zu bytes", strlen(name));
    struct tr_zip_member *member = new_member(zip);
    if (!member) return TR_ENOMEM;
    *member = (struct tr_zip_member){.name = tr_strdup(name), .offset = zip->writer->written};
    if (!member->name) return TR_ENOMEM;
    zip->count++;
    for (int i = 0; i < count; i++) {
        member->crc = tr_crc32(member->crc, pieces[i].data, pieces[i].size);
        member->bytes += pieces[i].size;
    }
    TR_TRY(write_local(zip, member));
    for (int i = 0; i < count; i++) TR_TRY(tr_file_write(zip->writer, pieces[i].data, pieces[i].size));
    return TR_OK;
}

/* ---- the directory ---- */

static tr_status write_central(const struct tr_zip *zip, const struct tr_zip_member *member)
{
    struct record record = {.size = 0}, extra = {.size = 0};
    bool wide_bytes = member->bytes >= zip->wide, wide_offset = member->offset >= zip->wide;
    bool wide = wide_bytes || wide_offset;
    size_t numbers = (wide_bytes ? 16 : 0) + (wide_offset ? 8 : 0);
    put(&record, 0x02014b50, 4);
    put(&record, VERSION_WIDE, 2); /* of the writer; upper byte 0: no attributes */
    put_member(&record, zip, member, wide);
    put(&record, wide ? 4 + numbers : 0, 2);
    put(&record, 0, 2); /* comment */
    put(&record, 0, 2); /* disk */
    put(&record, 0, 2); /* internal attributes */
    put(&record, 0, 4); /* external attributes */
    put_32(&record, zip, member->offset);
    if (wide) {
        put(&extra, EXTRA, 2);
        put(&extra, numbers, 2);
        if (wide_bytes) put(&extra, member->bytes, 8);
        if (wide_bytes) put(&extra, member->bytes, 8);
        if (wide_offset) put(&extra, member->offset, 8);
    }
    TR_TRY(write_record(zip, &record));
    TR_TRY(tr_file_write(zip->writer, member->name, strlen(member->name)));
    return write_record(zip, &extra);
}

tr_status tr_zip_finish(struct tr_zip *zip)
{
    uint64_t begin = zip->writer->written, count = (uint64_t)zip->count;
    for (int64_t i = 0; i < zip->count; i++) TR_TRY(write_central(zip, &zip->member[i]));
    uint64_t end = zip->writer->written, bytes = end - begin;
    struct record record = {.size = 0};
    if (begin >= zip->wide || bytes >= zip->wide || count >= UINT16_MAX) {
        put(&record, 0x06064b50, 4); /* 64-bit end record */
        put(&record, 44, 8);         /* bytes to follow */
        put(&record, VERSION_WIDE, 2);
        put(&record, VERSION_WIDE, 2);
        put(&record, 0, 8); /* this disk, and that of the directory */
        put(&record, count, 8);
        put(&record, count, 8);
        put(&record, bytes, 8);
        put(&record, begin, 8);
        put(&record, 0x07064b50, 4); /* its locator */
        put(&record, 0, 4);
        put(&record, end, 8);
        put(&record, 1, 4);
    }
    put(&record, 0x06054b50, 4); /* end record */
    put(&record, 0, 4);          /* disks */
    put(&record, count < UINT16_MAX ? count : UINT16_MAX, 2);
    put(&record, count < UINT16_MAX ? count : UINT16_MAX, 2);
    put_32(&record, zip, bytes);
    put_32(&record, zip, begin);
    put(&record, 0, 2); /* comment */
    return write_record(zip, &record);
}

void tr_zip_release(struct tr_zip *zip)
{
    for (int64_t i = 0; i < zip->count; i++) tr_free(zip->member[i].name);
    tr_free(zip->member);
    zip->member = NULL;
    zip->count = 0;
}
