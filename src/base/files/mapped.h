/* A table of the mapped files: finds the file that an address belongs to.
 *
 * A file that is cut short under a mapping, or whose disk fails, makes the access raise SIGBUS. A library
 * must not change what a signal does; a program can install a handler that looks up the file here and
 * reports it (cli/launch/lost_file.c).
 *
 * Invariant: an entry that a look-up can see is complete. Entries are changed under a lock, and read
 * without.
 */
#ifndef TR_BASE_MAPPED_H
#define TR_BASE_MAPPED_H

#include "trireme/status.h"

#include <stddef.h>

/* Notes that [data, data + size) maps the file `path`, which is copied. Where the table is full, the
   mapping is not noted. TR_ENOMEM. Any thread. */
tr_status tr_mapped_add(const void *data, size_t size, const char *path);
/* Forgets the mapping that begins at `data`, before it is unmapped; does nothing where there is none. Any
   thread. */
void tr_mapped_remove(const void *data);
/* The path of the file mapped at `address`, borrowed while the mapping lasts, or NULL. Any thread, and
   signal handlers. */
const char *tr_mapped_at(const void *address);

#endif
