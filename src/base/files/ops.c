#include "base/files/ops.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/path.h"
#include "base/reason.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8

static const tr_file_system machine = {&tr_file_ops_posix, NULL};

static const tr_file_system *resolve(const tr_file_system *files)
{
    if (!files) return &machine;
    assert(files->ops->version == TR_FILE_OPS_VERSION);
    return files;
}

/* What a person can do about an error; "" where the reason alone says it. */
static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
        return "; free space there or choose another place";
    case EDQUOT:
        return "; free space within the quota or choose another place";
    case EFBIG:
        return "; raise the file size limit (ulimit -f) or choose another file system";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; check the permissions or choose another place";
    case ENOENT:
    case ENOTDIR:
        return "; check the path";
    case EEXIST:
    case ENOTEMPTY:
        return "; remove it or choose another name";
    case ELOOP:
        return "; a symbolic link is not followed here: remove it or choose another place";
    case ENXIO:
        return "; a regular file is needed: remove what is there or choose another place";
    case EIO:
        return "; check the disk and the system log";
    case ENAMETOOLONG:
        return "; choose a shorter name";
    case EMFILE:
    case ENFILE:
        return "; raise the limit on open files (ulimit -n)";
    default:
        return "";
    }
}

tr_status tr_file_failure(const char *operation, const char *path, int error)
{
    return tr_fail(TR_EIO, "%s \"%s\": %s%s", operation, path, tr_errno_text(error), advice(error));
}

/* 0, or the failure of `operation` by a slot's result. */
static tr_status check(const char *operation, const char *path, int result)
{
    return result < 0 ? tr_file_failure(operation, path, -result) : TR_OK;
}

tr_status tr_file_begin(const tr_file_system *files, const char *path, enum tr_file_create create,
                        uint64_t expected, struct tr_file_writer *writer)
{
    files = resolve(files);
    *writer = (struct tr_file_writer){.files = files, .path = path, .expected = expected};
    writer->descriptor = files->ops->open(files->context, path, create);
    return check("create", path, writer->descriptor);
}

static tr_status write_failure(const struct tr_file_writer *writer, int error)
{
    if (writer->expected == 0)
        return tr_fail(TR_EIO, "write \"%s\": %s after %" PRIu64 " bytes%s", writer->path,
                       tr_errno_text(error), writer->written, advice(error));
    return tr_fail(TR_EIO, "write \"%s\": %s after %" PRIu64 " of %" PRIu64 " bytes%s", writer->path,
                   tr_errno_text(error), writer->written, writer->expected, advice(error));
}

tr_status tr_file_write(struct tr_file_writer *writer, const void *data, size_t size)
{
    const tr_file_system *files = writer->files;
    const char *rest = data;
    while (size > 0) {
        int64_t result = files->ops->write(files->context, writer->descriptor, rest, size);
        if (result == -EINTR) continue;
        /* A file system that accepts nothing without a reason would make this loop endless. */
        if (result == 0) result = -EIO;
        if (result < 0) return write_failure(writer, (int)-result);
        assert((uint64_t)result <= size);
        rest += result;
        size -= (size_t)result;
        writer->written += (uint64_t)result;
    }
    return TR_OK;
}

tr_status tr_file_finish(struct tr_file_writer *writer, bool durable)
{
    const tr_file_system *files = writer->files;
    int synced = durable ? files->ops->sync(files->context, writer->descriptor) : 0;
    int closed = files->ops->close(files->context, writer->descriptor);
    writer->descriptor = -1;
    if (synced < 0) return tr_file_failure("sync", writer->path, -synced);
    /* Network file systems may report only here that there was no room. */
    return check("close", writer->path, closed);
}

void tr_file_abandon(struct tr_file_writer *writer)
{
    if (writer->descriptor < 0 || !writer->files) return;
    writer->files->ops->close(writer->files->context, writer->descriptor);
    writer->descriptor = -1;
}

tr_status tr_file_rename(const tr_file_system *files, const char *from, const char *to)
{
    files = resolve(files);
    int result = files->ops->rename(files->context, from, to);
    if (result == 0) return TR_OK;
    return tr_fail(TR_EIO, "rename \"%s\" to \"%s\": %s%s", from, to, tr_errno_text(-result),
                   advice(-result));
}

tr_status tr_file_sync_directory(const tr_file_system *files, const char *path)
{
    files = resolve(files);
    return check("sync directory", path, files->ops->sync_directory(files->context, path));
}

tr_status tr_file_make_directory(const tr_file_system *files, const char *path)
{
    files = resolve(files);
    return check("make directory", path, files->ops->make_directory(files->context, path));
}

/* The length of `path` up to its last component, without the slashes between; 0 where the text has no
 * parent.
 */
static size_t parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    while (length > 0 && path[length - 1] == '/') length--;
    return length;
}

/* Makes `path` and its parents; `path` is changed meanwhile and restored. */
static int make_directories(const tr_file_system *files, char *path)
{
    int result = files->ops->make_directory(files->context, path);
    size_t length = parent_length(path);
    char *cut = path + length, kept = *cut;
    if (result == -ENOENT && length > 0) {
        *cut = '\0';
        result = make_directories(files, path);
        *cut = kept;
        if (result == 0) result = files->ops->make_directory(files->context, path);
    }
    if (result < 0 && result != -EEXIST) return result;
    /* An existing directory is synced too: its creator may have been killed before doing so. Failure is
       ignored then, since nothing is known to be wrong. */
    *cut = '\0';
    int synced = files->ops->sync_directory(files->context, length > 0 ? path : kept == '/' ? "/" : ".");
    *cut = kept;
    return result == 0 ? synced : 0;
}

tr_status tr_file_make_directories(const tr_file_system *files, const char *path)
{
    files = resolve(files);
    char *copy = tr_strdup(path);
    if (!copy) return TR_ENOMEM;
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/') copy[--length] = '\0';
    tr_status status = check("make directory", path, make_directories(files, copy));
    tr_free(copy);
    return status;
}

/* Keeps the first failure. */
static void note(tr_status *first, tr_status status)
{
    if (*first == TR_OK) *first = status;
}

static tr_status remove_tree(const tr_file_system *files, const char *path, int depth)
{
    int result = files->ops->remove_file(files->context, path);
    if (result == 0 || result == -ENOENT) return TR_OK;
    /* Linux says EISDIR for a directory, POSIX EPERM. */
    if ((result != -EISDIR && result != -EPERM) || depth == DEPTH_MAX)
        return tr_file_failure("remove", path, -result);
    struct tr_file_names names;
    TR_TRY(tr_file_list(files, path, &names));
    tr_status first = TR_OK;
    for (int64_t i = 0; i < names.count; i++) {
        char *inner = tr_format("%s/%s", path, names.name[i]);
        note(&first, inner ? remove_tree(files, inner, depth + 1) : TR_ENOMEM);
        tr_free(inner);
    }
    tr_file_names_free(&names);
    result = files->ops->remove_directory(files->context, path);
    if (first == TR_OK && result != -ENOENT) first = check("remove directory", path, result);
    return first;
}

tr_status tr_file_remove(const tr_file_system *files, const char *path)
{
    return remove_tree(resolve(files), path, 0);
}

void tr_file_discard(const tr_file_system *files, const char *path)
{
    struct tr_failure failure;
    tr_failure_keep(&failure, TR_OK);
    if (tr_file_remove(files, path) != TR_OK) tr_failure_restore(&failure);
}

/* A link cannot be overwritten: the new one is made under another name, and renamed. */
static tr_status put_link(const tr_file_system *files, const char *aside, const char *path, const char *name)
{
    TR_TRY(tr_file_remove(files, aside)); /* left by a killed process */
    TR_TRY(check("link", aside, files->ops->make_link(files->context, name, aside)));
    tr_status status = tr_file_rename(files, aside, path);
    if (status != TR_OK) tr_file_discard(files, aside);
    return status;
}

tr_status tr_file_point(const tr_file_system *files, const char *path, const char *name)
{
    files = resolve(files);
    char *aside = tr_format("%s.tmp", path), *parent = tr_path_parent(path);
    tr_status status = aside && parent ? put_link(files, aside, path, name) : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_sync_directory(files, parent);
    tr_free(parent);
    tr_free(aside);
    return status;
}

tr_status tr_file_read_link(const tr_file_system *files, const char *path, char *text, size_t size)
{
    files = resolve(files);
    int result = files->ops->read_link(files->context, path, text, size);
    if (result == 0) return TR_OK;
    *text = '\0';
    if (result == -EINVAL || result == -ENOENT || result == -ENOTDIR) return TR_OK;
    return tr_file_failure("read link", path, -result);
}

static int gather(void *user, const char *name)
{
    struct tr_file_names *names = user;
    if (!tr_grow(&names->name, names->count, sizeof *names->name)) return -ENOMEM;
    names->name[names->count] = tr_strdup(name);
    if (!names->name[names->count]) return -ENOMEM;
    names->count++;
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tr_status tr_file_list(const tr_file_system *files, const char *path, struct tr_file_names *out)
{
    files = resolve(files);
    struct tr_file_names names = {0};
    *out = names;
    int result = files->ops->list(files->context, path, gather, &names);
    if (result != 0) {
        tr_file_names_free(&names);
        return result == -ENOMEM ? tr_fail(TR_ENOMEM, "list \"%s\": out of memory", path)
                                 : tr_file_failure("list", path, -result);
    }
    if (names.count > 1) qsort(names.name, (size_t)names.count, sizeof(char *), by_bytes);
    *out = names;
    return TR_OK;
}

void tr_file_names_free(struct tr_file_names *names)
{
    for (int64_t i = 0; i < names->count; i++) tr_free(names->name[i]);
    tr_free(names->name);
    *names = (struct tr_file_names){0};
}
