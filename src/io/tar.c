#include "io/tar.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

/* Offsets of the fields of a header. */
enum {
    NAME = 0,
    MODE = 100,
    UID = 108,
    GID = 116,
    SIZE = 124,
    TIME = 136,
    SUM = 148,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345
};
#define NAME_SIZE   100
#define SIZE_SIZE   12
#define SUM_SIZE    8
#define PREFIX_SIZE 155
#define SIZE_OCTAL  ((uint64_t)1 << 33) /* sizes from here on do not fit into 11 octal digits */

/* `digits` octal digits and a NUL. */
static void put_octal(uint8_t *to, size_t digits, uint64_t value)
{
    for (size_t i = digits; i-- > 0; value >>= 3) to[i] = (uint8_t)('0' + (value & 7));
    to[digits] = 0;
}

/* The sum of the header's bytes, with blanks in place of the sum. */
static uint64_t sum_of(const uint8_t header[TR_TAR_BLOCK])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TR_TAR_BLOCK; i++) sum += i >= SUM && i < SUM + SUM_SIZE ? ' ' : header[i];
    return sum;
}

tr_status tr_tar_header(const char *directory, const char *name, uint64_t bytes, uint8_t header[TR_TAR_BLOCK])
{
    if (strlen(directory) > PREFIX_SIZE || strlen(name) > NAME_SIZE)
        return tr_fail(TR_EINVAL, "\"%.40s/%.120s\" is too long a name for a tar archive", directory, name);
    memset(header, 0, TR_TAR_BLOCK);
    memcpy(header + NAME, name, strlen(name));
    put_octal(header + MODE, 7, 0644);
    put_octal(header + UID, 7, 0);
    put_octal(header + GID, 7, 0);
    if (bytes < SIZE_OCTAL) {
        put_octal(header + SIZE, 11, bytes);
    } else {
        header[SIZE] = 0x80;
        for (int i = 0; i < 8; i++) header[SIZE + 11 - i] = (uint8_t)(bytes >> 8 * i);
    }
    put_octal(header + TIME, 11, 0);
    header[TYPE] = '0';
    memcpy(header + MAGIC, "ustar\00000", 8);
    memcpy(header + PREFIX, directory, strlen(directory));
    put_octal(header + SUM, 6, sum_of(header));
    header[SUM + 7] = ' ';
    return TR_OK;
}

size_t tr_tar_padding(uint64_t bytes)
{
    return (size_t)((TR_TAR_BLOCK - bytes % TR_TAR_BLOCK) % TR_TAR_BLOCK);
}

/* ---- reading ---- */

/* Octal digits with blanks and NULs around them. */
static bool get_octal(const uint8_t *field, size_t size, uint64_t *value)
{
    size_t i = 0, digits = 0;
    *value = 0;
    while (i < size && field[i] == ' ') i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++, digits++)
        *value = *value * 8 + (uint64_t)(field[i] - '0');
    while (i < size && (field[i] == ' ' || field[i] == 0)) i++;
    return i == size && digits > 0;
}

/* The same, or the binary form of GNU tar. */
static bool get_size(const uint8_t *field, uint64_t *value)
{
    if (field[0] != 0x80) return get_octal(field, SIZE_SIZE, value);
    *value = 0;
    for (size_t i = 1; i < SIZE_SIZE; i++) {
        if (*value >> 55) return false;
        *value = *value << 8 | field[i];
    }
    return true;
}

enum tr_tar_verdict tr_tar_parse(const uint8_t block[TR_TAR_BLOCK], struct tr_tar_header *out)
{
    uint64_t sum;
    size_t used = 0;
    memcpy(out->name, block + NAME, NAME_SIZE);
    out->name[NAME_SIZE] = 0;
    out->type = (char)block[TYPE];
    out->size = 0;
    while (used < TR_TAR_BLOCK && block[used] == 0) used++;
    if (used == TR_TAR_BLOCK) return TR_TAR_END;
    if (!get_octal(block + SUM, SUM_SIZE, &sum) || sum != sum_of(block)) return TR_TAR_BAD_SUM;
    return get_size(block + SIZE, &out->size) ? TR_TAR_GOOD : TR_TAR_BAD_SIZE;
}

/* Parses the header at `at`, after which there are `left` bytes. */
static tr_status read_header(const char *path, const uint8_t *block, size_t at, size_t left,
                             struct tr_tar_header *out, bool *end)
{
    enum tr_tar_verdict verdict = tr_tar_parse(block, out);
    *end = verdict == TR_TAR_END && at > 0;
    if (*end) return TR_OK;
    if (verdict == TR_TAR_BAD_SUM || verdict == TR_TAR_END)
        return tr_fail(TR_EFORMAT,
                       "\"%s\": there is no member of a tar archive at byte %zu; is it one, and complete?",
                       path, at);
    if (verdict == TR_TAR_BAD_SIZE || out->size > left)
        return tr_fail(
            TR_EFORMAT,
            "\"%s\": the member at byte %zu has more bytes than the %zu that are there; the rest is missing",
            path, at, left);
    return TR_OK;
}

tr_status tr_tar_next_file(const char *path, const void *archive, size_t size, size_t *at,
                           struct tr_tar_file *out, bool *there)
{
    *there = false;
    for (;;) {
        struct tr_tar_header header;
        size_t left = size - *at;
        bool end;
        if (left == 0 && *at > 0) return TR_OK;
        if (left < TR_TAR_BLOCK)
            return tr_fail(TR_EFORMAT,
                           "\"%s\": %zu bytes at byte %zu are too few for a member of a tar archive", path,
                           left, *at);
        const uint8_t *block = (const uint8_t *)archive + *at; /* an empty archive has no memory */
        left -= TR_TAR_BLOCK;
        TR_TRY(read_header(path, block, *at, left, &header, &end));
        if (end) return TR_OK;
        const size_t bytes = (size_t)header.size, padding = tr_tar_padding(bytes);
        *at += TR_TAR_BLOCK + bytes + (padding < left - bytes ? padding : left - bytes);
        if (header.type == '5' || header.type == 'x' || header.type == 'g') continue;
        const char *slash = strrchr(header.name, '/');
        snprintf(out->name, sizeof out->name, "%s", slash ? slash + 1 : header.name);
        if (header.type != '0' && header.type != 0)
            return tr_fail(TR_EFORMAT, "\"%s\": \"%s\" is neither a file nor a directory", path, out->name);
        out->data = block + TR_TAR_BLOCK;
        out->size = bytes;
        *there = true;
        return TR_OK;
    }
}
