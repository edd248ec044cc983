/* Making an entry of the cache beside the work that needs the data: the run begins with what it has unpacked
 * itself, and the next one finds the entry.
 */
#ifndef TR_DATA_KEEP_H
#define TR_DATA_KEEP_H

#include "data/cache/cache.h"

/* Begins to write the entry `entry`, and then, where `record` is not NULL, the record of that key that leads
   to it. `hold` is a key that the caller holds: it is released in the end. The cache stays open as long. The
   source must not be closed by its class alone: tr_source_close() waits for the end. False where no thread is
   to be had: nothing has begun. */
bool tr_keep_begin(tr_cache *cache, tr_source *source, const char entry[TR_SHA256_TEXT], const char *record,
                   const char hold[TR_SHA256_TEXT]);
/* Waits for the end; what went wrong goes to the log. Nothing where nothing was begun. */
void tr_keep_finish(tr_source *source);

#endif
