/* The regular files in a tar archive, one after another, plain or gzip. Nothing is written to the disk;
 * names are only compared. Long names and other extensions are skipped.
 */
#ifndef TR_DATA_TAR_H
#define TR_DATA_TAR_H

#include "data/files/inflate.h"

struct tr_tar_member {
    char name[101];
    uint64_t size;
};

/* Moves to the next regular file, whose contents the caller then reads or skips entirely; member->name is
   empty at the end of the archive. `inflate` is at a header and `path` is for messages. TR_EFORMAT,
   TR_ECORRUPT. */
tr_status tr_tar_next(tr_inflate *inflate, const char *path, struct tr_tar_member *member);
/* Skips the rest of a member of which `done` bytes were read, and its padding. */
tr_status tr_tar_skip(tr_inflate *inflate, const struct tr_tar_member *member, uint64_t done);

#endif
