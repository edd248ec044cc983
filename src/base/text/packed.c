#include "base/text/packed.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#define GZIP_FILE (MAX_WBITS + 16)

/* Fills `to` [size]. zlib compares the checksum. */
static tr_status inflate_all(const struct tr_packed *packed, char *to, size_t size)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)packed->bytes,
                       .avail_in = (uInt)packed->size,
                       .next_out = (unsigned char *)to,
                       .avail_out = (uInt)size,
                       .zalloc = tr_zlib_alloc,
                       .zfree = tr_zlib_free};
    if (inflateInit2(&stream, GZIP_FILE) != Z_OK)
        return tr_fail(TR_ENOMEM, "unpack texts of the program: no memory");
    const int code = inflate(&stream, Z_FINISH);
    const bool whole = code == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    if (code == Z_MEM_ERROR) return tr_fail(TR_ENOMEM, "unpack texts of the program: no memory");
    if (!whole)
        return tr_fail(TR_ECORRUPT, "unpack texts of the program: its file was damaged; install it again");
    return TR_OK;
}

tr_status tr_unpack(const struct tr_packed *packed, char **out)
{
    size_t size = 0, count = 0;
    *out = NULL;
    for (; packed->text[count].name; count++) size += packed->text[count].length;
    /* The texts are unpacked to the end of the memory, then moved down, a terminator after each. */
    char *all = tr_alloc(size + count, 1);
    if (!all) return TR_ENOMEM;
    const tr_status status = inflate_all(packed, all + count, size);
    if (status != TR_OK) {
        tr_free(all);
        return status;
    }
    char *to = all;
    const char *from = all + count;
    for (size_t i = 0; i < count; i++) {
        const size_t length = packed->text[i].length;
        memmove(to, from, length);
        to[length] = '\0';
        to += length + 1;
        from += length;
    }
    *out = all;
    return TR_OK;
}

const char *tr_unpacked(const struct tr_packed *packed, const char *unpacked, const char *name)
{
    for (const struct tr_packed_text *text = packed->text; text->name; text++) {
        if (strcmp(text->name, name) == 0) return unpacked;
        unpacked += text->length + 1;
    }
    return NULL;
}
