/* Zip archives of uncompressed members (APPNOTE.TXT of PKWARE, with 64-bit records where a size or offset
 * reaches 4 GiB).
 *
 *     for each member   local header | name | extra | data
 *     for each member   central header | name | extra
 *     end record        (64-bit end record | its locator | before it, where needed)
 *
 * Times are 1 January 1980, so that equal members make equal files.
 */
#ifndef TR_IO_ZIP_H
#define TR_IO_ZIP_H

#include "base/files/ops.h"

/* Limit of 32 bits. Sizes and offsets from here on go into 64-bit records. */
#define TR_ZIP_WIDE UINT32_MAX

struct tr_zip_member {
    char *name;
    uint32_t crc;
    uint64_t bytes, offset;
};

/* An archive being written. Plain memory: may lie on the stack. Begin with TR_ZIP_INIT(writer), end with
   tr_zip_release(). */
struct tr_zip {
    struct tr_file_writer *writer; /* borrowed */
    uint64_t wide;                 /* TR_ZIP_WIDE; less in tests */
    struct tr_zip_member *member;
    int64_t count;
};
#define TR_ZIP_INIT(to)                                                                                      \
    {                                                                                                        \
        .writer = (to), .wide = TR_ZIP_WIDE                                                                  \
    }

struct tr_zip_piece {
    const void *data;
    size_t size;
};

/* Writes a member: the pieces one after the other. Everything is borrowed for the call. TR_EIO, TR_ENOMEM,
   and TR_EINVAL for a name of 65,535 bytes or more. */
tr_status tr_zip_add(struct tr_zip *zip, const char *name, const struct tr_zip_piece *pieces, int count);
/* Writes the directory and the end of the archive. TR_EIO, TR_ENOMEM. */
tr_status tr_zip_finish(struct tr_zip *zip);
void tr_zip_release(struct tr_zip *zip);

#endif
