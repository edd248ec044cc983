/* Unpacking of gzip and zlib from memory, piece by piece, so that a file can never make us allocate more than
 * its reader agreed to.
 */
#ifndef TR_DATA_INFLATE_H
#define TR_DATA_INFLATE_H

#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

/* Unpacked text files and whole-file packed record files are refused beyond this. */
#define TR_UNPACKED_MAX ((size_t)4 << 30)

enum tr_packing { TR_PACKING_NONE, TR_PACKING_GZIP, TR_PACKING_ZLIB };

/* "none", "gzip" or "zlib", from the first bytes. A gzip file starts with 1f 8b; a zlib stream with a
   deflate header whose two bytes are a multiple of 31. No IDX file, and no TFRecord file shorter than 2^59
   bytes, starts so; callers that know a magic number check that first. Any thread. */
enum tr_packing tr_packing_of(const uint8_t *data, size_t size);

typedef struct tr_inflate tr_inflate;

/* Starts unpacking `size` bytes at `data`, both `name` (for messages) and `data` borrowed until destroyed.
   TR_PACKING_NONE hands the bytes through. Returned, destroy with tr_inflate_destroy(). */
tr_status tr_inflate_create(const char *name, const uint8_t *data, size_t size, enum tr_packing packing,
                            tr_inflate **out);
/* Accepts NULL, nulls the handle. */
void tr_inflate_destroy(tr_inflate **inflate);

/* Unpacks up to `wanted` bytes; *got is less only at the end of the data, where checksums have been verified.
   Gzip files may consist of several members, whose contents follow each other. TR_EFORMAT for bytes that are
   not deflate data, for truncated data and for trailing bytes; TR_ECORRUPT for a wrong checksum. */
tr_status tr_inflate_read(tr_inflate *inflate, void *to, size_t wanted, size_t *got);

/* As tr_inflate_read(), but TR_EFORMAT when fewer than `wanted` bytes are left; `what` names them in the
   message. */
tr_status tr_inflate_exact(tr_inflate *inflate, void *to, size_t wanted, const char *what);

/* TR_EFORMAT unless everything has been read. */
tr_status tr_inflate_end(tr_inflate *inflate);

/* Checks the next `size` bytes, at least 1. Any status but TR_OK ends the unpacking. */
typedef tr_status tr_inflate_check(void *user, const uint8_t *piece, size_t size);
/* Unpacks everything into a fresh block (*out, free with tr_free()) of *length bytes. TR_EFORMAT when that
   is more than `limit`. `check` (NULL: none) is called with `user` for the bytes as they are unpacked. */
tr_status tr_inflate_all(tr_inflate *inflate, size_t limit, tr_inflate_check *check, void *user,
                         uint8_t **out, size_t *length);

/* Unpacked bytes handed out so far. */
uint64_t tr_inflate_offset(const tr_inflate *inflate);

#endif
