/* Archives of tar, in the ustar form (POSIX.1-1988), with sizes of 8 GiB and more as GNU tar writes them.
 *
 *     for each member   a header of 512 bytes | data | zeros up to a multiple of 512
 *     two blocks of zeros
 *
 * Times are 0 and owners empty, so that equal members make equal archives.
 */
#ifndef TR_IO_TAR_H
#define TR_IO_TAR_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_TAR_BLOCK ((size_t)512)

/* The header of a file `directory`/`name` of `bytes` bytes; directory at most 155 characters, name 100.
   TR_EINVAL for longer ones. */
tr_status tr_tar_header(const char *directory, const char *name, uint64_t bytes,
                        uint8_t header[TR_TAR_BLOCK]);
/* The zeros after data of `bytes` bytes. */
size_t tr_tar_padding(uint64_t bytes);

/* The fields of a member's header. */
struct tr_tar_header {
    char name[101]; /* the path's last 100 characters at most */
    uint64_t size;
    char type; /* '0': a file; '5': a directory; NUL: a file in old archives */
};
enum tr_tar_verdict {
    TR_TAR_GOOD,
    TR_TAR_END,      /* a block of zeros */
    TR_TAR_BAD_SUM,  /* damaged, or no header */
    TR_TAR_BAD_SIZE, /* the size is no number */
};
enum tr_tar_verdict tr_tar_parse(const uint8_t block[TR_TAR_BLOCK], struct tr_tar_header *out);

/* A file in an archive that lies in memory. */
struct tr_tar_file {
    char name[101]; /* after the last slash of its path */
    const uint8_t *data;
    size_t size;
};
/* The first file from byte *at on; *at becomes the beginning of the next member; *there is false at the
   end. Directories and records of names and times are skipped. `path` names the archive in messages.
   TR_EFORMAT: no member, or an incomplete one, or neither file nor directory. */
tr_status tr_tar_next_file(const char *path, const void *archive, size_t size, size_t *at,
                           struct tr_tar_file *out, bool *there);

#endif
