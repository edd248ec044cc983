#include "data/cache/cache.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "data/cache/files.h"
#include "data/files/hold.h"
#include "data/cache/unpacked.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct tr_cache {
    const tr_file_system *files;
    char *directory;
    int64_t limit;
    int lock; /* descriptor, or -1: work without locks */
    atomic_int users;
};

const char *tr_cache_directory(const tr_cache *cache)
{
    return cache->directory;
}

tr_status tr_cache_open(const tr_file_system *files, const char *directory, int64_t limit, tr_cache **out)
{
    *out = NULL;
    TR_TRY(tr_cache_check_directory(files, directory, true));
    tr_cache *cache = tr_alloc_zero(1, sizeof *cache);
    if (!cache) return TR_ENOMEM;
    cache->files = files;
    cache->limit = limit > 0 ? limit : TR_CACHE_LIMIT;
    cache->lock = -1;
    atomic_store(&cache->users, 1);
    cache->directory = tr_strdup(directory);
    char *lock = tr_path_join(directory, "lock");
    if (cache->directory && lock)
        cache->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    bool made = cache->directory && lock;
    tr_free(lock);
    if (!made) {
        tr_cache_close(&cache);
        return TR_ENOMEM;
    }
    *out = cache;
    return TR_OK;
}

void tr_cache_close(tr_cache **handle)
{
    tr_cache *cache = *handle;
    *handle = NULL;
    if (!cache || atomic_fetch_sub(&cache->users, 1) > 1) return;
    if (cache->lock >= 0) close(cache->lock);
    tr_free(cache->directory);
    tr_free(cache);
}

void tr_cache_share(tr_cache *cache)
{
    atomic_fetch_add(&cache->users, 1);
}

/* ---- who makes an entry ---- */

/* The byte of the lock file that stands for a key. */
static int64_t byte_of(const char *key)
{
    unsigned long long number = 0;
    char digits[16];
    memcpy(digits, key, 15);
    digits[15] = '\0';
    sscanf(digits, "%llx", &number);
    return (int64_t)number;
}

void tr_cache_hold(tr_cache *cache, const char key[TR_SHA256_TEXT])
{
    if (cache->lock >= 0) tr_hold_take(cache->lock, byte_of(key), "unpacks the data", TR_HOLD_PATIENCE);
}

void tr_cache_release(tr_cache *cache, const char key[TR_SHA256_TEXT])
{
    if (cache->lock >= 0) tr_hold_release(cache->lock, byte_of(key));
}

/* ---- records ---- */

/* "trireme note 1\nentry <key or ->\ndigest <digest>\n<CRC-32C of what comes before>\n" */
#define RECORD_SIZE 256

static size_t record_text(const struct tr_cache_record *record, char text[RECORD_SIZE])
{
    int length = snprintf(text, RECORD_SIZE, "trireme note 1\nentry %s\ndigest %s\n",
                          record->entry[0] ? record->entry : "-", record->digest);
    return (size_t)(length + snprintf(text + length, RECORD_SIZE - (size_t)length, "%08x\n",
                                      tr_crc32c(0, text, (size_t)length)));
}

static bool is_key(const char *text)
{
    return strlen(text) == TR_SHA256_TEXT - 1 && strspn(text, "0123456789abcdef") == TR_SHA256_TEXT - 1;
}

bool tr_cache_record(const tr_cache *cache, const char key[TR_SHA256_TEXT], struct tr_cache_record *out)
{
    char text[RECORD_SIZE], again[RECORD_SIZE], entry[TR_SHA256_TEXT] = "";
    char *path = tr_cache_path(cache->directory, key, TR_CACHE_RECORD);
    uint64_t size = 0;
    int descriptor = -1;
    bool good = path && tr_cache_open_file(path, &descriptor, &size) == TR_OK && size > 0 &&
                size < sizeof text && tr_file_read_at(descriptor, path, 0, text, (size_t)size) == TR_OK;
    if (descriptor >= 0) close(descriptor);
    tr_free(path);
    if (!good) return false;
    text[size] = '\0';
    *out = (struct tr_cache_record){0};
    if (sscanf(text, "trireme note 1\nentry %64s\ndigest %64s\n", entry, out->digest) != 2) return false;
    if (strcmp(entry, "-") != 0) memcpy(out->entry, entry, sizeof entry);
    if ((out->entry[0] && !is_key(out->entry)) || !is_key(out->digest)) return false;
    /* Only a record that we would write in the same form is well formed. */
    return record_text(out, again) == size && memcmp(again, text, (size_t)size) == 0;
}

tr_status tr_cache_write_record(tr_cache *cache, const char key[TR_SHA256_TEXT],
                                const struct tr_cache_record *record)
{
    char text[RECORD_SIZE];
    char *path = tr_cache_path(cache->directory, key, TR_CACHE_RECORD);
    if (!path) return TR_ENOMEM;
    struct tr_cache_writing writing;
    size_t size = record_text(record, text);
    tr_status status = tr_cache_begin(cache->files, path, size, &writing);
    if (status == TR_OK) {
        status = tr_file_write(&writing.writer, text, size);
        status = tr_cache_finish(&writing, status);
    }
    tr_free(path);
    return status;
}

/* ---- entries ---- */

static tr_status open_entry(const char *path, const char *key, bool verify, tr_source **out)
{
    struct tr_file_map map;
    uint64_t size;
    int descriptor;
    TR_TRY(tr_cache_open_file(path, &descriptor, &size));
    tr_status status = tr_file_map_open(descriptor, path, size, &map);
    if (status == TR_OK) status = tr_unpacked_open(&map, path, key, verify, out);
    /* Notes the use, so that entries unused for long are removed first. If this fails, the entry only
       looks older than it is. */
    if (status == TR_OK) {
        futimens(descriptor, NULL);
        tr_unpacked_read_from(*out, descriptor, path);
    } else {
        close(descriptor);
    }
    return status;
}

tr_status tr_cache_get(tr_cache *cache, const char key[TR_SHA256_TEXT], bool verify, tr_source **out)
{
    char *path = tr_cache_path(cache->directory, key, TR_CACHE_DATA);
    if (!path) return TR_ENOMEM;
    *out = NULL;
    tr_status status = open_entry(path, key, verify, out);
    if (status == TR_ECORRUPT) {
        tr_log_line(TR_LOG_WARNING, "data cache: %s; it is made anew", tr_error_message());
        tr_file_discard(cache->files, path);
    }
    tr_free(path);
    return status == TR_ENOMEM ? status : TR_OK;
}

static tr_status write_entry(const char *key, const tr_source *source, struct tr_cache_writing *writing)
{
    static const char page[TR_UNPACKED_PAGE] =
        "Unpacked training data of Trireme; may be removed: `trireme data cache --clear`.\n";
    TR_TRY(tr_file_write(&writing->writer, page, sizeof page));
    return tr_unpacked_write(source, key, &writing->writer);
}

tr_status tr_cache_put(tr_cache *cache, const char key[TR_SHA256_TEXT], const tr_source *source)
{
    const struct tr_source_info *info = &source->info;
    /* Least bytes of an example in memory: texts may be short, and windows overlap. */
    int64_t least = info->features == TR_FEATURE_TOKENS ? 1 : tr_source_capacity(source);
    if (info->count > cache->limit / (least > 0 ? least : 1))
        return tr_fail(TR_EUNSUPPORTED, "data cache \"%s\": the data are larger than its limit of %lld bytes",
                       cache->directory, (long long)cache->limit);
    char *path = tr_cache_path(cache->directory, key, TR_CACHE_DATA);
    if (!path) return TR_ENOMEM;
    struct tr_cache_writing writing;
    tr_cache_sweep(cache->files, cache->directory);
    tr_status status = tr_cache_begin(cache->files, path, 0, &writing);
    if (status == TR_OK) status = tr_cache_finish(&writing, write_entry(key, source, &writing));
    if (status == TR_OK) tr_cache_trim(cache->files, cache->directory, cache->limit, key);
    tr_free(path);
    return status;
}
