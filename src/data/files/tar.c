#include "data/files/tar.h"

#include "base/fail.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK 512

/* Fields of a header that matter here. */
enum { NAME = 0, NAME_SIZE = 100, SIZE = 124, SIZE_SIZE = 12, CHECKSUM = 148, CHECKSUM_SIZE = 8, TYPE = 156 };

/* An octal number, blanks and zeros around it. False for anything else. */
static bool octal(const uint8_t *field, size_t size, uint64_t *value)
{
    size_t i = 0, digits = 0;
    *value = 0;
    while (i < size && field[i] == ' ') i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++, digits++)
        *value = *value * 8 + (uint64_t)(field[i] - '0');
    while (i < size && (field[i] == ' ' || field[i] == 0)) i++;
    return i == size && digits > 0;
}

static bool checksum_is_right(const uint8_t *header)
{
    uint64_t stored, sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_SIZE ? ' ' : header[i];
    }
    return octal(header + CHECKSUM, CHECKSUM_SIZE, &stored) && stored == sum;
}

tr_status tr_tar_next(tr_inflate *inflate, const char *path, struct tr_tar_member *member)
{
    for (;;) {
        uint8_t header[BLOCK];
        uint64_t offset = tr_inflate_offset(inflate);
        TR_TRY(tr_inflate_exact(inflate, header, sizeof header, "the header of a member"));
        memcpy(member->name, header + NAME, NAME_SIZE);
        member->name[NAME_SIZE] = 0;
        member->size = 0;
        bool zero = true;
        for (size_t i = 0; i < BLOCK; i++) zero = zero && header[i] == 0;
        if (zero) {
            member->name[0] = 0;
            return TR_OK;
        }
        if (!checksum_is_right(header)) {
            return tr_fail(TR_ECORRUPT,
                           "%s: the header at offset %" PRIu64
                           " (unpacked) does not match its checksum, or this is "
                           "no tar archive; get the file again",
                           path, offset);
        }
        if (!octal(header + SIZE, SIZE_SIZE, &member->size)) {
            return tr_fail(TR_EFORMAT, "%s: the size at offset %" PRIu64 " (unpacked) is no octal number",
                           path, offset + SIZE);
        }
        if ((header[TYPE] == '0' || header[TYPE] == 0) && member->name[0] != 0) return TR_OK;
        TR_TRY(tr_tar_skip(inflate, member, 0));
    }
}

tr_status tr_tar_skip(tr_inflate *inflate, const struct tr_tar_member *member, uint64_t done)
{
    uint8_t ignored[16 * BLOCK];
    uint64_t left = (member->size + BLOCK - 1) / BLOCK * BLOCK - done;
    while (left > 0) {
        size_t part = left < sizeof ignored ? (size_t)left : sizeof ignored;
        TR_TRY(tr_inflate_exact(inflate, ignored, part, "a member"));
        left -= part;
    }
    return TR_OK;
}
