/* Where the unpacked data of a process come from: the cache (data/cache/cache.h), another process of the host
 * that has them already, or the files themselves.
 *
 * The processes of a job on a host have a slot for each data set: a file in memory without a name. The
 * first process takes its lock, finds or makes the data, and records in the slot where they are: the key
 * of an entry of the cache, or, where there is no cache, the unpacked data themselves. The others wait for
 * the lock. If the first one dies, the lock is free and the slot still empty: the next one takes over.
 *
 *     slot     magic, kind, key of the request, key of the entry; at TR_UNPACKED_PAGE what
 *              data/cache/unpacked.h describes, where the kind is SLOT_DATA (store.c). The head is written
 * last
 */
#ifndef TR_DATA_STORE_H
#define TR_DATA_STORE_H

#include "base/files/ops.h"
#include "data/source.h"

#include <stdatomic.h>

/* A slot for each data set, and for each further source of a joined one: part k, from 0, has the slot of
   the set + TR_STORE_SETS * k. */
#define TR_STORE_SETS  3
#define TR_STORE_SLOTS (TR_STORE_SETS * TR_SOURCE_PARTS)

/* `directory` of the cache (NULL: none is used) and its limit in bytes (0: the default); a directory that
   cannot be used causes a warning in the log. `files` (NULL: the machine's) is borrowed until destroying.
   Returned, destroy with tr_store_destroy() before or after the sources that it opened. */
tr_status tr_store_create(const tr_file_system *files, const char *directory, int64_t limit, tr_store **out);
/* Accepts NULL, nulls the handle. */
void tr_store_destroy(tr_store **store);

/* Gives the store the slots that the processes of this host share, -1 for none; the descriptors are taken.
   Each process has opened the file for itself. A process that has waited `patience` seconds for another
   one continues without it. `is_reporter`: it reports to the log that it waits. */
void tr_store_share(tr_store *store, const int slot[TR_STORE_SLOTS], double patience, bool is_reporter);

/* Files of more bytes than this are not unpacked, since their contents take at least as much memory;
   opening them gives TR_ENOMEM. INT64_MAX: no limit. */
void tr_store_allow_memory(tr_store *store, int64_t bytes);

/* Tables whose files have at least so many bytes, or more than half of the allowed memory, are unpacked
   into files in the cache directory, where there is a cache, and not into memory; 0: the default. */
void tr_store_spill_from(tr_store *store, int64_t bytes);

/* Entries are made in the background from here on, where no other process waits for them. Closing the
   source waits for its entry. */
void tr_store_defer(tr_store *store);

/* Nothing is opened once *asked is not 0: TR_EINTERRUPTED. `asked` is borrowed until destroying. */
void tr_store_stop(tr_store *store, const atomic_int *asked);

/* The source to open. All is borrowed for the call, except `files`, which the source takes. */
struct tr_source_request {
    const struct tr_source_format *format;
    const void *options;
    const char *directory, *state;
    const char *text; /* the description, in a canonical form */
    struct tr_source_files *files;
    bool unpacks; /* the format keeps unpacked data in memory */
};
/* Opens a source through the store. `slot` from 0 to TR_STORE_SLOTS - 1, or -1 for data of this process
   alone. Errors as tr_source_open(); faults of the cache or the slots cause a warning, not an error. Any
   thread, but one at a time for each slot. */
tr_status tr_store_open(tr_store *store, const struct tr_source_request *request, int slot, tr_source **out);

/* Gives the store sources over a program's own examples; the format `memory` finds them by name. `sources`
   [count] and all they point to are borrowed until destroying. */
void tr_store_give(tr_store *store, const struct tr_named_source *sources, int count);
/* The source of that name, borrowed; NULL where there is none, and for a NULL store. */
const tr_source *tr_store_given(const tr_store *store, const char *name);

/* Records the digest of a source that this store opened and that has none recorded, so that a later run
   need not read all of the data for it. */
void tr_store_learn(tr_store *store, const tr_source *source, const char digest[TR_SHA256_TEXT]);

#endif
