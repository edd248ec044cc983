/* Unpacked data as one file, which any number of processes can map: the same examples as the source that it
 * was written from, ready to be used.
 *
 *     page     4096 bytes that mean nothing here
 *     sections features, where each text starts, labels, names of classes, state; each at a multiple of 64
 *     tail     sizes, places and CRC-32C of the sections, the source's info and digest, a CRC-32C of itself
 *
 * Numbers are in the machine's byte order, which the tail names. The tail comes last, so that an
 * incomplete file has none.
 */
#ifndef TR_DATA_UNPACKED_H
#define TR_DATA_UNPACKED_H

#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "data/source.h"

/* Raise this with every change of the file's form, and of the examples that any format reads from its
   files (for images there is TR_IMAGE_RULES). */
#define TR_UNPACKED_VERSION 3
#define TR_UNPACKED_PAGE    4096

/* Writes the examples of `source` after the page, which the writer has written. `key` identifies the file.
   Reads all of the source, also for its digest. TR_EIO, TR_ENOMEM, and errors of reading. */
tr_status tr_unpacked_write(const tr_source *source, const char key[TR_SHA256_TEXT],
                            struct tr_file_writer *writer);

/* A source that reads from the mapped file, which is taken, also after a failure; `name` is for messages.
   `verify`: compare the checksums of all sections, which reads them all; otherwise only the tail and the
   places of the sections are checked. TR_ECORRUPT unless the file is whole and that of `key`. Returned,
   close with tr_source_close(). */
tr_status tr_unpacked_open(struct tr_file_map *map, const char *name, const char key[TR_SHA256_TEXT],
                           bool verify, tr_source **out);

/* From here on, examples of a fixed size are read from the file, whose descriptor is taken (`path` is for
   messages). Their mapped pages are released and not used again. For a source of tr_unpacked_open() that
   no other thread has yet, over a file that does not change. */
void tr_unpacked_read_from(tr_source *source, int descriptor, const char *path);

#endif
