/* Which file an address belongs to: a table of the files that are mapped.
 *
 * A file that is cut short under a mapping, or whose disk fails, makes the access raise SIGBUS. A library
 * must not change what a signal does; a program can install a handler that asks here which file it was and
 * says so (cli/launch/lost_file.c).
 *
 * Invariant: an entry that a look-up can see is complete. Entries are changed under a lock, and seen without.
 */
#ifndef TR_BASE_MAPPED_H
#define TR_BASE_MAPPED_H

#include "trireme/status.h"

#include <stddef.h>

/* Notes that [data, data + size) is the file `path`, which is copied. Where the table is full, the mapping
   stays unknown. TR_ENOMEM. Any thread. */
tr_status tr_mapped_add(const void *data, size_t size, const char *path);
/* Forgets the mapping that begins at `data`, before it is taken away; nothing where none does. Any thread. */
void tr_mapped_remove(const void *data);
/* The path of the file that is mapped at `address`, borrowed while the mapping lasts, or NULL. Any thread,
   and signal handlers. */
const char *tr_mapped_at(const void *address);

#endif
