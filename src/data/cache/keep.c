#include "data/cache/keep.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "base/threads/thread.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

struct tr_keeping {
    pthread_t thread;
    tr_cache *cache;
    const tr_source *source;
    char entry[TR_SHA256_TEXT], record[TR_SHA256_TEXT],
        hold[TR_SHA256_TEXT];  /* note is "" where none is wanted */
    struct tr_failure failure; /* kept here, since messages belong to threads */
};

static tr_status write_all(struct tr_keeping *keeping)
{
    struct tr_cache_record record;
    TR_TRY(tr_cache_put(keeping->cache, keeping->entry, keeping->source));
    if (!keeping->record[0]) return TR_OK;
    memcpy(record.entry, keeping->entry, sizeof record.entry);
    TR_TRY(tr_source_digest(keeping->source, record.digest));
    return tr_cache_write_record(keeping->cache, keeping->record, &record);
}

static void *keep(void *user)
{
    struct tr_keeping *keeping = user;
    /* This thread must not preempt one that computes. If the call fails, the priority stays as it was. */
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    tr_failure_keep(&keeping->failure, write_all(keeping));
    tr_cache_release(keeping->cache, keeping->hold);
    return NULL;
}

bool tr_keep_begin(tr_cache *cache, tr_source *source, const char entry[TR_SHA256_TEXT], const char *record,
                   const char hold[TR_SHA256_TEXT])
{
    struct tr_keeping *keeping = tr_alloc_zero(1, sizeof *keeping);
    if (!keeping) return false;
    keeping->cache = cache;
    keeping->source = source;
    memcpy(keeping->entry, entry, sizeof keeping->entry);
    memcpy(keeping->hold, hold, sizeof keeping->hold);
    if (record) memcpy(keeping->record, record, sizeof keeping->record);
    tr_cache_share(cache);
    if (tr_thread_start(&keeping->thread, keep, keeping) == 0) {
        source->keeping = keeping;
        source->finish = tr_keep_finish;
        return true;
    }
    tr_cache_close(&keeping->cache);
    tr_free(keeping);
    return false;
}

void tr_keep_finish(tr_source *source)
{
    struct tr_keeping *keeping = source->keeping;
    if (!keeping) return;
    pthread_join(keeping->thread, NULL);
    if (keeping->failure.status != TR_OK)
        tr_log_line(TR_LOG_WARNING, "data cache: %s; the next run unpacks the data again",
                    keeping->failure.message);
    tr_cache_close(&keeping->cache);
    tr_free(keeping);
    source->keeping = NULL;
    source->finish = NULL;
}
