/* The data cache: a directory of unpacked data (data/cache/unpacked.h), so that a run can use the data that
 * an earlier run unpacked.
 *
 *     <key>.data   an entry; the key is a SHA-256 over the description of a source, the state that it shares
 *                  with the training data, and the contents of its files
 *     <key>.note   a record about files with certain stamps (data/files/stamps.h): the key of their entry,
 *                  and the digest of the source. Written only where stamps can be relied on
 *     lock         bytes of it are locked while an entry is made
 *     *.tmp        entries under way, locked by their writers; unlocked ones were left by killed processes
 *
 * Invariants: an entry is renamed to its name when it is complete. From then on it is never changed, only
 * removed; a process that has mapped it keeps its contents. Nothing in the directory is trusted: directory
 * and files must belong to the user and be writable by no other user, and an entry's checksums are compared
 * whenever a run opens it. A power failure may leave a damaged entry, which the checksums show, so nothing
 * waits for the disk.
 *
 * Any thread may use a cache.
 */
#ifndef TR_DATA_CACHE_H
#define TR_DATA_CACHE_H

#include "base/files/ops.h"
#include "base/numbers/hash.h"
#include "data/source.h"

#define TR_CACHE_LIMIT ((int64_t)10 << 30) /* bytes of all entries, where no other limit is given */

typedef struct tr_cache tr_cache;

/* Opens the directory and makes it, for the user alone, where it is missing. `files` (NULL: the machine's) is
   borrowed until closing. TR_EIO; TR_EINVAL where it belongs to another user or others can write there.
   Returned, close with tr_cache_close(). */
tr_status tr_cache_open(const tr_file_system *files, const char *directory, int64_t limit, tr_cache **out);
/* The directory; borrowed from the cache. */
const char *tr_cache_directory(const tr_cache *cache);
/* Adds a user of the cache, who must close it, too. */
void tr_cache_share(tr_cache *cache);
/* Accepts NULL, nulls the handle. The last close frees the cache. */
void tr_cache_close(tr_cache **cache);

/* Waits until no other process (of any user of the directory) makes the entry of this key, and takes its
   lock. Continues without the lock after a long time: two makers do no harm, since the last to finish
   wins. */
void tr_cache_hold(tr_cache *cache, const char key[TR_SHA256_TEXT]);
void tr_cache_release(tr_cache *cache, const char key[TR_SHA256_TEXT]);

struct tr_cache_record {
    char entry[TR_SHA256_TEXT]; /* "" where the source is not unpacked */
    char digest[TR_SHA256_TEXT];
};
/* Whether there is a valid record of this key. */
bool tr_cache_record(const tr_cache *cache, const char key[TR_SHA256_TEXT], struct tr_cache_record *out);
/* TR_EIO, TR_ENOMEM. */
tr_status tr_cache_write_record(tr_cache *cache, const char key[TR_SHA256_TEXT],
                                const struct tr_cache_record *record);

/* The entry of this key as a source, whose last use is now; `verify` as for tr_unpacked_open(). *out is
   NULL where there is no valid one; a damaged one is removed, with a message in the log. Returned, close
   with tr_source_close(). TR_ENOMEM. */
tr_status tr_cache_get(tr_cache *cache, const char key[TR_SHA256_TEXT], bool verify, tr_source **out);
/* Makes an entry, and removes the least recently used ones until the total is within the limit. TR_EIO (no
   space, say), TR_EUNSUPPORTED when it is larger than the limit. */
tr_status tr_cache_put(tr_cache *cache, const char key[TR_SHA256_TEXT], const tr_source *source);

#endif
