#include "data/files/tar.h"

#include "base/fail.h"
#include "io/tar.h"

#include <inttypes.h>
#include <string.h>

tr_status tr_tar_next(tr_inflate *inflate, const char *path, struct tr_tar_member *member)
{
    for (;;) {
        uint8_t block[TR_TAR_BLOCK];
        struct tr_tar_header header;
        const uint64_t offset = tr_inflate_offset(inflate);
        TR_TRY(tr_inflate_exact(inflate, block, sizeof block, "the header of a member"));
        const enum tr_tar_verdict verdict = tr_tar_parse(block, &header);
        if (verdict == TR_TAR_BAD_SUM) {
            return tr_fail(TR_ECORRUPT,
                           "%s: the header at offset %" PRIu64
                           " (unpacked) does not match its checksum, or this is "
                           "no tar archive; get the file again",
                           path, offset);
        }
        if (verdict == TR_TAR_BAD_SIZE)
            return tr_fail(TR_EFORMAT,
                           "%s: the size of the member at offset %" PRIu64 " (unpacked) is no number", path,
                           offset);
        memcpy(member->name, header.name, sizeof member->name);
        member->size = header.size;
        if (verdict == TR_TAR_END) return TR_OK;
        if ((header.type == '0' || header.type == 0) && member->name[0] != 0) return TR_OK;
        TR_TRY(tr_tar_skip(inflate, member, 0));
    }
}

tr_status tr_tar_skip(tr_inflate *inflate, const struct tr_tar_member *member, uint64_t done)
{
    uint8_t ignored[16 * TR_TAR_BLOCK];
    uint64_t left = member->size + tr_tar_padding(member->size) - done;
    while (left > 0) {
        size_t part = left < sizeof ignored ? (size_t)left : sizeof ignored;
        TR_TRY(tr_inflate_exact(inflate, ignored, part, "a member"));
        left -= part;
    }
    return TR_OK;
}
