/* The data cache: a directory of unpacked data (data/cache/unpacked.h), so that a run finds ready what an
 * earlier one unpacked.
 *
 *     <key>.data   an entry; the key is a SHA-256 over the description of a source, what it shares with the
 *                  training data, and the contents of its files
 *     <key>.note   what is known of files with these stamps (data/files/stamps.h): the key of their entry,
 * and the digest of what the source holds. Written only where stamps can be relied on lock         bytes of
 * it are locked while an entry is made
 *     *.tmp        entries under way; locked by who writes them, else left behind by a kill
 *
 * Invariants: an entry takes its name when it is complete, and is never changed then, only removed: who has
 * mapped it keeps what it has. Nothing in the directory is trusted for being there: directory and files must
 * belong to the user and be writable by no other user, and an entry's checksums are compared whenever a run
 * opens it. A power cut may leave an entry damaged, which shows in them; so nothing waits for the disk.
 *
 * Any thread may use a cache.
 */
#ifndef TR_DATA_CACHE_H
#define TR_DATA_CACHE_H

#include "base/files/ops.h"
#include "base/numbers/hash.h"
#include "data/source.h"

#define TR_CACHE_LIMIT ((int64_t)10 << 30) /* bytes of all entries, unless told otherwise */

typedef struct tr_cache tr_cache;

/* Opens the directory and makes it, for the user alone, where it is missing. `files` (NULL: the machine's) is
   borrowed until closing. TR_EIO; TR_EINVAL where it belongs to another user or others can write there.
   Returned, close with tr_cache_close(). */
tr_status tr_cache_open(const tr_file_system *files, const char *directory, int64_t limit, tr_cache **out);
/* The directory; borrowed from the cache. */
const char *tr_cache_directory(const tr_cache *cache);
/* The cache has one more user, who closes it, too. */
void tr_cache_share(tr_cache *cache);
/* Accepts NULL, nulls the handle. The last one that was handed out ends it. */
void tr_cache_close(tr_cache **cache);

/* Waits until no other process makes the entry of this key (of any user of the directory), and takes that on;
   goes on without after a long time, since two makers do no harm: the last to finish wins. */
void tr_cache_hold(tr_cache *cache, const char key[TR_SHA256_TEXT]);
void tr_cache_release(tr_cache *cache, const char key[TR_SHA256_TEXT]);

struct tr_cache_record {
    char entry[TR_SHA256_TEXT]; /* "" where the source is not unpacked */
    char digest[TR_SHA256_TEXT];
};
/* Whether there is a good record of this key. */
bool tr_cache_record(const tr_cache *cache, const char key[TR_SHA256_TEXT], struct tr_cache_record *out);
/* TR_EIO, TR_ENOMEM. */
tr_status tr_cache_write_record(tr_cache *cache, const char key[TR_SHA256_TEXT],
                                const struct tr_cache_record *record);

/* The entry of this key as a source, whose last use is now; `verify` as for tr_unpacked_open(). *out is NULL
   where there is no good one: a damaged one is removed, with a word to the log. Returned, close with
   tr_source_close(). TR_ENOMEM. */
tr_status tr_cache_get(tr_cache *cache, const char key[TR_SHA256_TEXT], bool verify, tr_source **out);
/* Makes an entry, and removes those not used for longest until all together keep to the limit. TR_EIO (no
   space, say), TR_EUNSUPPORTED when it is larger than the limit. */
tr_status tr_cache_put(tr_cache *cache, const char key[TR_SHA256_TEXT], const tr_source *source);

#endif
