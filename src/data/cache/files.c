#include "data/cache/files.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/reason.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file under way that is younger than this may not be locked yet. */
#define SWEEP_SECONDS 60
/* Records older than this are removed: they are small, and their files may be long gone. */
#define NOTE_SECONDS (90LL * 24 * 3600)

#define KEY (TR_SHA256_TEXT - 1)

char *tr_cache_path(const char *directory, const char *key, const char *suffix)
{
    return tr_format("%s/%s%s", directory, key, suffix);
}

/* Why a file may not be trusted, or NULL. */
static const char *distrust(const struct stat *facts)
{
    if (facts->st_uid != geteuid()) return "belongs to another user";
    if (facts->st_mode & (S_IWGRP | S_IWOTH)) return "can be written by other users";
    return NULL;
}

tr_status tr_cache_check_directory(const tr_file_system *files, const char *directory, bool make)
{
    struct stat facts;
    if (stat(directory, &facts) != 0) {
        if (errno != ENOENT || !make) {
            tr_status status = tr_file_failure("open", directory, errno);
            return errno == ENOENT ? TR_ENOTFOUND : status;
        }
        char *parent = tr_path_parent(directory);
        if (!parent) return TR_ENOMEM;
        tr_status status = tr_file_make_directories(files, parent);
        tr_free(parent);
        if (status != TR_OK) return status;
        /* Another process may have made it just now: the check below decides. */
        if (mkdir(directory, 0700) != 0 && errno != EEXIST)
            return tr_file_failure("make directory", directory, errno);
        if (stat(directory, &facts) != 0) return tr_file_failure("open", directory, errno);
    }
    if (!S_ISDIR(facts.st_mode)) return tr_file_failure("open", directory, ENOTDIR);
    const char *why = distrust(&facts);
    if (!why) return TR_OK;
    return tr_fail(TR_EINVAL, "\"%s\" %s; give it to yourself alone (chmod 700), or choose another directory",
                   directory, why);
}

tr_status tr_cache_open_file(const char *path, int *descriptor, uint64_t *size)
{
    struct stat facts;
    do *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    while (*descriptor < 0 && errno == EINTR);
    if (*descriptor < 0 && errno == ENOENT) return TR_ENOTFOUND;
    if (*descriptor < 0) return tr_fail(TR_ECORRUPT, "open \"%s\": %s", path, tr_errno_text(errno));
    const char *why = fstat(*descriptor, &facts) != 0 ? "cannot be looked at"
                      : !S_ISREG(facts.st_mode)       ? "is no file"
                                                      : distrust(&facts);
    *size = (uint64_t)facts.st_size;
    if (!why) return TR_OK;
    close(*descriptor);
    *descriptor = -1;
    return tr_fail(TR_ECORRUPT, "\"%s\" %s", path, why);
}

/* ---- writing ---- */

tr_status tr_cache_begin(const tr_file_system *files, const char *path, uint64_t expected,
                         struct tr_cache_writing *writing)
{
    static atomic_int number;
    *writing = (struct tr_cache_writing){.files = files, .path = path, .writer.descriptor = -1};
    writing->aside = tr_format("%s.%ld-%d" TR_CACHE_TMP, path, (long)getpid(), atomic_fetch_add(&number, 1));
    if (!writing->aside) return TR_ENOMEM;
    /* A process of another host may have this number; its file is not ours, and may be under way. */
    tr_status status = tr_file_begin(files, writing->aside, TR_FILE_NEW, expected, &writing->writer);
    if (status != TR_OK) {
        tr_free(writing->aside);
        writing->aside = NULL;
        return status;
    }
    flock(writing->writer.descriptor, LOCK_EX | LOCK_NB); /* tells tr_cache_sweep() that the file is in use */
    fchmod(writing->writer.descriptor, 0600);             /* whatever permissions the umask gives others */
    return TR_OK;
}

tr_status tr_cache_finish(struct tr_cache_writing *writing, tr_status status)
{
    if (status == TR_OK) status = tr_file_finish(&writing->writer, false);
    if (status == TR_OK) status = tr_file_rename(writing->files, writing->aside, writing->path);
    if (status != TR_OK) {
        tr_file_abandon(&writing->writer);
        tr_file_discard(writing->files, writing->aside);
    }
    tr_free(writing->aside);
    return status;
}

/* ---- what there is ---- */

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

/* Whether a name is a key followed by one of our suffixes. */
static bool is_ours(const char *name)
{
    if (strlen(name) <= KEY || strspn(name, "0123456789abcdef") != KEY) return false;
    const char *rest = name + KEY;
    return strcmp(rest, TR_CACHE_DATA) == 0 || strcmp(rest, TR_CACHE_RECORD) == 0 ||
           ends_with(rest, TR_CACHE_TMP);
}

tr_status tr_cache_each(const tr_file_system *files, const char *directory,
                        tr_status (*visit)(void *user, const struct tr_cache_file *file), void *user)
{
    struct tr_file_names names;
    TR_TRY(tr_file_list(files, directory, &names));
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < names.count; i++) {
        struct stat facts;
        if (!is_ours(names.name[i])) continue;
        char *path = tr_path_join(directory, names.name[i]);
        if (!path) status = TR_ENOMEM;
        if (path && lstat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
            struct tr_cache_file file = {
                path, names.name[i], (int64_t)facts.st_size, {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec}};
            status = visit(user, &file);
        }
        tr_free(path);
    }
    tr_file_names_free(&names);
    return status;
}

/* ---- removing ---- */

struct entry {
    char *path;
    int64_t size, used[2];
};

struct entries {
    struct entry *entry;
    int64_t count, bytes;
    const char *kept; /* key */
};

static tr_status collect(void *user, const struct tr_cache_file *file)
{
    struct entries *entries = user;
    if (!ends_with(file->name, TR_CACHE_DATA)) return TR_OK;
    entries->bytes += file->size;
    if (strncmp(file->name, entries->kept, KEY) == 0) return TR_OK;
    if (!tr_grow(&entries->entry, entries->count, sizeof *entries->entry)) return TR_ENOMEM;
    char *path = tr_strdup(file->path);
    if (!path) return TR_ENOMEM;
    entries->entry[entries->count++] = (struct entry){path, file->size, {file->used[0], file->used[1]}};
    return TR_OK;
}

static int by_use(const void *a_, const void *b_)
{
    const struct entry *a = a_, *b = b_;
    if (a->used[0] != b->used[0]) return a->used[0] < b->used[0] ? -1 : 1;
    return (a->used[1] > b->used[1]) - (a->used[1] < b->used[1]);
}

void tr_cache_trim(const tr_file_system *files, const char *directory, int64_t limit, const char *kept)
{
    struct entries entries = {.kept = kept};
    tr_status status = tr_cache_each(files, directory, collect, &entries);
    if (status == TR_OK && entries.count > 1)
        qsort(entries.entry, (size_t)entries.count, sizeof *entries.entry, by_use);
    for (int64_t i = 0; i < entries.count; i++) {
        if (status == TR_OK && entries.bytes > limit) {
            tr_file_discard(files, entries.entry[i].path);
            entries.bytes -= entries.entry[i].size;
        }
        tr_free(entries.entry[i].path);
    }
    tr_free(entries.entry);
}

/* Whether nobody is writing the file: its writer would hold the lock. */
static bool is_left(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return false;
    bool left = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    close(descriptor);
    return left;
}

static tr_status sweep(void *user, const struct tr_cache_file *file)
{
    int64_t age = (int64_t)time(NULL) - file->used[0];
    bool old_note = ends_with(file->name, TR_CACHE_RECORD) && age > NOTE_SECONDS;
    bool left = ends_with(file->name, TR_CACHE_TMP) && age > SWEEP_SECONDS && is_left(file->path);
    if (old_note || left) tr_file_discard(user, file->path);
    return TR_OK;
}

void tr_cache_sweep(const tr_file_system *files, const char *directory)
{
    tr_cache_each(files, directory, sweep, (void *)files);
}
