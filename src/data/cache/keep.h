/* Makes an entry of the cache in the background: the run begins with the data that it unpacked itself, and
 * the next run finds the entry.
 */
#ifndef TR_DATA_KEEP_H
#define TR_DATA_KEEP_H

#include "data/cache/cache.h"

/* Begins to write the entry `entry`, and then, where `record` is not NULL, the record of that key that
   leads to it. `hold` is a key whose lock the caller holds; the lock is released at the end, and the cache
   stays open until then. Close the source with tr_source_close(), which waits for the end, never through
   its class alone. False where no thread could be started: nothing has begun. */
bool tr_keep_begin(tr_cache *cache, tr_source *source, const char entry[TR_SHA256_TEXT], const char *record,
                   const char hold[TR_SHA256_TEXT]);
/* Waits for the end; a failure goes to the log. Does nothing where nothing was begun. */
void tr_keep_finish(tr_source *source);

#endif
