#include "data/cache/store.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "base/text/text.h"
#include "data/cache/cache.h"
#include "data/files/hold.h"
#include "data/images/image.h"
#include "data/cache/keep.h"
#include "data/cache/unpacked.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* From this size on, in bytes of the files, tables are unpacked into a file. A text of this size has about
   half as many bytes of numbers. */
#define SPILL_FROM ((int64_t)256 << 20)

struct tr_store {
    tr_cache *cache;     /* or NULL */
    atomic_bool refused; /* the cache could not take an entry: reported once */
    int slot[TR_STORE_SLOTS];
    bool is_reporter, defers;
    double patience; /* seconds to wait for another process */
    int64_t memory;  /* most bytes of memory for unpacked data */
    int64_t spill;   /* from this size of the files on, data are unpacked into a file, where there is a
                        cache */
    const struct tr_named_source *given;
    int given_count;
    const atomic_int *stop; /* or NULL */
};

void tr_store_stop(tr_store *store, const atomic_int *asked)
{
    store->stop = asked;
}

void tr_store_give(tr_store *store, const struct tr_named_source *sources, int count)
{
    store->given = sources;
    store->given_count = count;
}

const tr_source *tr_store_given(const tr_store *store, const char *name)
{
    for (int i = 0; store && i < store->given_count; i++)
        if (strcmp(store->given[i].name, name) == 0) return store->given[i].source;
    return NULL;
}

/* ---- keys ---- */

/* A digest over the request and, by `add`, over its files. */
static tr_status make_key(const struct tr_source_request *request, const char *kind,
                          tr_status (*add)(const struct tr_source_request *request, tr_sha256 *hash),
                          char key[TR_SHA256_TEXT])
{
    static const uint32_t versions[] = {TR_UNPACKED_VERSION, TR_SOURCE_VERSION, TR_IMAGE_RULES};
    const char *const texts[] = {kind, TRIREME_VERSION, request->text, request->state ? request->state : ""};
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, versions, sizeof versions);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        tr_sha256_add(hash, texts[i], strlen(texts[i]) + 1);
    tr_status status = add(request, hash);
    if (status == TR_OK) return tr_sha256_end(&hash, key);
    tr_sha256_destroy(&hash);
    return status;
}

static tr_status add_stamps(const struct tr_source_request *request, tr_sha256 *hash)
{
    tr_source_files_add_stamps(request->files, hash);
    return TR_OK;
}

static tr_status add_contents(const struct tr_source_request *request, tr_sha256 *hash)
{
    return tr_source_files_add_contents(request->files, hash);
}

static tr_status add_paths(const struct tr_source_request *request, tr_sha256 *hash)
{
    for (int64_t i = 0; i < request->files->count; i++)
        tr_sha256_add(hash, request->files->file[i].path, strlen(request->files->file[i].path) + 1);
    return TR_OK;
}

/* ---- the cache ---- */

/* A request while the cache looks for it. */
struct wanted {
    const struct tr_source_request *request;
    char record[TR_SHA256_TEXT]; /* key of the record for these stamps */
    bool settled;                /* the stamps can be relied on */
    bool alone;
};

/* Directory for unpacked data that may be larger than memory; NULL: none. */
static const char *spill_of(const tr_store *store, const struct tr_source_request *request, int64_t bytes)
{
    if (!store->cache || !request->unpacks || !request->format->open_spilling) return NULL;
    return bytes >= store->spill || bytes > store->memory / 2 ? tr_cache_directory(store->cache) : NULL;
}

static tr_status open_files(const tr_store *store, const struct tr_source_request *request, tr_source **out)
{
    int64_t bytes = tr_source_files_bytes(request->files);
    char size[TR_TEXT_NUMBER_SIZE], room[TR_TEXT_NUMBER_SIZE];
    const char *spill = spill_of(store, request, bytes);
    if (spill)
        return request->format->open_spilling(request->options, request->directory, request->state, spill,
                                              out);
    if (request->unpacks && bytes > store->memory)
        return tr_fail(
            TR_ENOMEM,
            "\"%s\": the data are unpacked into memory; their files alone have %s, of memory %s are "
            "free; take a format that is read as needed (npy, tfrecord), or give `no_memory_check`",
            request->files->file[0].path, tr_text_from_bytes(bytes, size),
            tr_text_from_bytes(store->memory, room));
    return request->format->open(request->options, request->directory, request->state, out);
}

/* The entry that a record names; *out is NULL where there is none. */
static tr_status follow_note(tr_store *store, const struct tr_source_request *request, const char *key,
                             char entry[TR_SHA256_TEXT], tr_source **out)
{
    struct tr_cache_record record;
    if (!tr_cache_record(store->cache, key, &record)) return TR_OK;
    if (record.entry[0]) {
        memcpy(entry, record.entry, sizeof record.entry);
        return tr_cache_get(store->cache, record.entry, true, out);
    }
    if (request->unpacks) return TR_OK;
    TR_TRY(open_files(store, request, out));
    memcpy((*out)->digest, record.digest, sizeof record.digest);
    return TR_OK;
}

/* The cache is optional: its failures are reported once and otherwise ignored. */
static void refuse(tr_store *store)
{
    if (!atomic_exchange(&store->refused, true))
        tr_log_line(TR_LOG_WARNING, "data cache: %s; going on without", tr_error_message());
}

/* Whether files whose stamps cannot be relied on are those of the entry's key: compares contents. */
static bool still_same(const struct tr_source_request *request, const char *entry, bool settled)
{
    char again[TR_SHA256_TEXT];
    if (tr_source_files_changed(request->files)) return false;
    return settled || (make_key(request, "entry", add_contents, again) == TR_OK && strcmp(again, entry) == 0);
}

/* Makes an entry from a source that was read from the files, and replaces the source by it on success.
   entry is "" where that failed or is under way. */
static void make_entry(tr_store *store, const struct wanted *wanted, char entry[TR_SHA256_TEXT],
                       tr_source **source)
{
    tr_source *cached = NULL;
    const char *record = wanted->settled ? wanted->record : NULL;
    bool wants = !atomic_load(&store->refused) && still_same(wanted->request, entry, wanted->settled);
    if (wants && wanted->alone && store->defers && !(*source)->spilled &&
        tr_keep_begin(store->cache, *source, entry, record, wanted->record)) {
        entry[0] = '\0';
        return;
    }
    tr_status status = wants ? tr_cache_put(store->cache, entry, *source) : TR_OK;
    if (wants && status == TR_OK) status = tr_cache_get(store->cache, entry, false, &cached);
    if (status != TR_OK) refuse(store);
    if (!cached) {
        entry[0] = '\0';
        return;
    }
    tr_source_close(source);
    *source = cached;
}

/* Called while the lock of the record's key is held. */
static tr_status find_or_make(tr_store *store, const struct wanted *wanted, char entry[TR_SHA256_TEXT],
                              tr_source **out)
{
    /* Another process may have made it meanwhile. */
    if (wanted->settled) TR_TRY(follow_note(store, wanted->request, wanted->record, entry, out));
    if (*out) return TR_OK;
    TR_TRY(make_key(wanted->request, "entry", add_contents, entry));
    TR_TRY(tr_cache_get(store->cache, entry, true, out));
    if (!*out) {
        TR_TRY(open_files(store, wanted->request, out));
        make_entry(store, wanted, entry, out);
    }
    if (!entry[0] || !wanted->settled) return TR_OK;
    struct tr_cache_record record;
    memcpy(record.entry, entry, sizeof record.entry);
    memcpy(record.digest, (*out)->digest, sizeof record.digest);
    if (tr_cache_write_record(store->cache, wanted->record, &record) != TR_OK) refuse(store);
    return TR_OK;
}

/* Without slots. `alone`: no other process waits for the result. entry is "" where the source has none. */
static tr_status resolve(tr_store *store, const struct tr_source_request *request, bool alone,
                         char entry[TR_SHA256_TEXT], tr_source **out)
{
    struct wanted wanted = {.request = request, .alone = alone};
    *out = NULL;
    entry[0] = '\0';
    if (!store->cache) return open_files(store, request, out);
    wanted.settled = tr_source_files_settled(request->files, (int64_t)time(NULL));
    TR_TRY(make_key(request, "note", add_stamps, wanted.record));
    if (wanted.settled) TR_TRY(follow_note(store, request, wanted.record, entry, out));
    if (*out) return TR_OK;
    if (!request->unpacks) {
        TR_TRY(open_files(store, request, out));
        if (wanted.settled) memcpy((*out)->record, wanted.record, sizeof wanted.record);
        return TR_OK;
    }
    tr_cache_hold(store->cache, wanted.record);
    tr_status status = find_or_make(store, &wanted, entry, out);
    bool goes_on = status == TR_OK && (*out)->keeping; /* the thread releases the key at the end */
    if (!goes_on) tr_cache_release(store->cache, wanted.record);
    if (status != TR_OK) tr_source_close(out);
    return status;
}

/* ---- slots ---- */

#define SLOT_MAGIC "trirslot"

enum slot_kind { SLOT_EMPTY, SLOT_ENTRY, SLOT_DATA };

struct slot_head {
    char magic[8];
    uint32_t kind, unused; /* enum slot_kind */
    char request[TR_SHA256_TEXT], entry[TR_SHA256_TEXT];
};

/* The name of a slot's memory in messages. */
#define SLOT_NAME "memory that processes share"

static tr_status open_slot_data(int slot, const char *request_key, tr_source **out)
{
    struct stat facts;
    struct tr_file_map map;
    if (fstat(slot, &facts) != 0) return tr_fail(TR_EIO, SLOT_NAME ": cannot be looked at");
    TR_TRY(tr_file_map_open(slot, SLOT_NAME, (uint64_t)facts.st_size, &map));
    return tr_unpacked_open(&map, SLOT_NAME, request_key, false, out);
}

/* The result of another process; *out is NULL where there is none. *taken: the slot serves another
   request, and must be left alone. */
static tr_status take_slot(tr_store *store, int slot, const char *request_key, bool *taken, tr_source **out)
{
    struct slot_head head;
    *out = NULL;
    *taken = false;
    if (pread(slot, &head, sizeof head, 0) != (ssize_t)sizeof head) return TR_OK;
    if (memcmp(head.magic, SLOT_MAGIC, sizeof head.magic) != 0 || head.kind == SLOT_EMPTY) return TR_OK;
    *taken = memcmp(head.request, request_key, sizeof head.request) != 0;
    if (*taken) return TR_OK;
    if (head.kind == SLOT_DATA) return open_slot_data(slot, request_key, out);
    /* The process that recorded the entry has compared its checksums. */
    head.entry[sizeof head.entry - 1] = '\0';
    return store->cache ? tr_cache_get(store->cache, head.entry, false, out) : TR_OK;
}

static tr_status write_slot_data(int slot, const char *request_key, const tr_source *source)
{
    static const char page[TR_UNPACKED_PAGE];
    char path[64];
    struct tr_file_writer writer;
    snprintf(path, sizeof path, "/proc/self/fd/%d", slot);
    /* A process that died may have left a part. */
    if (ftruncate(slot, 0) != 0) return tr_fail(TR_EIO, SLOT_NAME ": cannot be emptied");
    TR_TRY(tr_file_begin(NULL, path, TR_FILE_EXISTING, 0, &writer));
    tr_status status = tr_file_write(&writer, page, sizeof page);
    if (status == TR_OK) status = tr_unpacked_write(source, request_key, &writer);
    if (status == TR_OK) return tr_file_finish(&writer, false);
    tr_file_abandon(&writer);
    return status;
}

/* Shares the result of this process with the others. The data go into the slot where no cache entry has
   them. */
static void fill_slot(int slot, const char *request_key, const char *entry, tr_source **source)
{
    struct slot_head head = {.kind = entry[0] ? SLOT_ENTRY : SLOT_DATA};
    tr_source *shared = NULL;
    tr_status status = TR_OK;
    memcpy(head.magic, SLOT_MAGIC, sizeof head.magic);
    memcpy(head.request, request_key, sizeof head.request);
    memcpy(head.entry, entry, strlen(entry) + 1);
    if (!entry[0]) {
        status = write_slot_data(slot, request_key, *source);
        if (status == TR_OK) status = open_slot_data(slot, request_key, &shared);
    }
    if (status == TR_OK && pwrite(slot, &head, sizeof head, 0) != (ssize_t)sizeof head)
        status = tr_fail(TR_EIO, SLOT_NAME ": cannot be written");
    if (status != TR_OK) {
        tr_log_line(TR_LOG_WARNING, "%s; each process of this host unpacks the data for itself",
                    tr_error_message());
        tr_source_close(&shared);
        if (ftruncate(slot, 0) != 0) return; /* a process that has mapped it keeps its memory */
    }
    if (!shared) return;
    tr_source_close(source);
    *source = shared;
}

static tr_status open_shared(tr_store *store, const struct tr_source_request *request, int slot,
                             tr_source **out)
{
    char key[TR_SHA256_TEXT], entry[TR_SHA256_TEXT];
    bool taken = true;
    tr_status status = TR_OK;
    *out = NULL;
    TR_TRY(make_key(request, "request", add_paths, key));
    bool held = tr_hold_take(slot, 0, store->is_reporter ? "unpacks the data" : NULL, store->patience);
    if (held) status = take_slot(store, slot, key, &taken, out);
    if (status != TR_OK && status != TR_ENOMEM) status = TR_OK; /* then the files are read */
    if (status == TR_OK && !*out) {
        status = resolve(store, request, false, entry, out);
        if (status == TR_OK && !taken) fill_slot(slot, key, entry, out);
    }
    if (held) tr_hold_release(slot, 0);
    return status;
}

/* ---- the store ---- */

tr_status tr_store_create(const tr_file_system *files, const char *directory, int64_t limit, tr_store **out)
{
    tr_store *store = *out = tr_alloc_zero(1, sizeof *store);
    if (!store) return TR_ENOMEM;
    store->memory = INT64_MAX;
    store->spill = SPILL_FROM;
    for (int i = 0; i < TR_STORE_SLOTS; i++) store->slot[i] = -1;
    if (!directory) return TR_OK;
    tr_status status = tr_cache_open(files, directory, limit, &store->cache);
    if (status == TR_ENOMEM) {
        tr_store_destroy(out);
        return status;
    }
    if (status != TR_OK) refuse(store);
    return TR_OK;
}

void tr_store_destroy(tr_store **handle)
{
    tr_store *store = *handle;
    if (!store) return;
    for (int i = 0; i < TR_STORE_SLOTS; i++)
        if (store->slot[i] >= 0) close(store->slot[i]);
    tr_cache_close(&store->cache);
    tr_free(store);
    *handle = NULL;
}

void tr_store_defer(tr_store *store)
{
    store->defers = true;
}

void tr_store_allow_memory(tr_store *store, int64_t bytes)
{
    store->memory = bytes;
}

void tr_store_spill_from(tr_store *store, int64_t bytes)
{
    store->spill = bytes > 0 ? bytes : SPILL_FROM;
}

void tr_store_share(tr_store *store, const int slot[TR_STORE_SLOTS], double patience, bool is_reporter)
{
    memcpy(store->slot, slot, sizeof store->slot);
    store->is_reporter = is_reporter;
    store->patience = patience;
}

tr_status tr_store_open(tr_store *store, const struct tr_source_request *request, int slot, tr_source **out)
{
    char entry[TR_SHA256_TEXT];
    if (store && store->stop && *store->stop)
        return tr_fail(TR_EINTERRUPTED, "opening the data was ended by the stop of the settings");
    if (slot < 0 || store->slot[slot] < 0 || !request->unpacks)
        return resolve(store, request, true, entry, out);
    return open_shared(store, request, store->slot[slot], out);
}

void tr_store_learn(tr_store *store, const tr_source *source, const char digest[TR_SHA256_TEXT])
{
    struct tr_cache_record record = {.entry = ""};
    if (!store->cache || !source->record[0] || tr_source_files_changed(&source->files)) return;
    memcpy(record.digest, digest, sizeof record.digest);
    if (tr_cache_write_record(store->cache, source->record, &record) != TR_OK) refuse(store);
}
