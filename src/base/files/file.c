#include "base/files/file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/mapped.h"
#include "base/reason.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool tr_file_exists(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

bool tr_file_is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    return "a device";
}

tr_status tr_file_open(const char *path, int *descriptor, uint64_t *size)
{
    *descriptor = -1;
    *size = 0;
    /* Without O_NONBLOCK the open of a pipe would wait for a writer. */
    int opened;
    do opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (opened < 0 && errno == EINTR);
    if (opened < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR;
        tr_status status = tr_file_failure("open", path, errno);
        return missing ? TR_ENOTFOUND : status;
    }
    struct stat facts;
    tr_status status = TR_OK;
    if (fstat(opened, &facts) != 0)
        status = tr_file_failure("open", path, errno);
    else if (!S_ISREG(facts.st_mode))
        status =
            tr_fail(TR_EFORMAT, "open \"%s\": is %s; a regular file is needed", path, kind_of(facts.st_mode));
    if (status != TR_OK) {
        close(opened);
        return status;
    }
    *descriptor = opened;
    *size = (uint64_t)facts.st_size;
    return TR_OK;
}

tr_status tr_file_read_at(int descriptor, const char *path, uint64_t offset, void *to, size_t size)
{
    char *rest = to;
    while (size > 0) {
        ssize_t got = pread(descriptor, rest, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return tr_fail(TR_EIO, "read \"%s\": %s at offset %" PRIu64 "; check the disk and the system log",
                           path, tr_errno_text(errno), offset);
        if (got == 0)
            return tr_fail(TR_EIO,
                           "read \"%s\": ends at offset %" PRIu64 ", %zu bytes early; is it being written?",
                           path, offset, size);
        rest += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return TR_OK;
}

tr_status tr_file_read(const char *path, uint64_t limit, struct tr_file_content *out)
{
    *out = (struct tr_file_content){0};
    int descriptor;
    uint64_t size;
    TR_TRY(tr_file_open(path, &descriptor, &size));
    tr_status status = TR_OK;
    char *data = NULL;
    if (size > limit || size >= PTRDIFF_MAX) {
        status = tr_fail(TR_EFORMAT,
                         "read \"%s\": %" PRIu64 " bytes, more than the limit of %" PRIu64
                         "; is it the right file?",
                         path, size, limit);
        goto out;
    }
    data = tr_alloc((size_t)size + 1, 1);
    if (!data) {
        status = tr_fail_in(TR_ENOMEM, "read \"%s\"", path);
        goto out;
    }
    TR_TRY_GOTO(tr_file_read_at(descriptor, path, 0, data, (size_t)size), out);
    data[size] = '\0';
    *out = (struct tr_file_content){data, (size_t)size};
    data = NULL;
out:
    tr_free(data);
    close(descriptor);
    return status;
}

void tr_file_content_free(struct tr_file_content *content)
{
    tr_free(content->data);
    *content = (struct tr_file_content){0};
}

tr_status tr_file_map_open(int descriptor, const char *path, uint64_t size, struct tr_file_map *out)
{
    *out = (struct tr_file_map){0};
    if (size > PTRDIFF_MAX) return tr_file_failure("map", path, EFBIG);
    if (size == 0) return TR_OK;
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return tr_file_failure("map", path, errno);
    tr_status status = tr_mapped_add(data, (size_t)size, path);
    if (status == TR_OK)
        *out = (struct tr_file_map){data, (size_t)size};
    else
        munmap(data, (size_t)size);
    return status;
}

tr_status tr_file_map(const char *path, struct tr_file_map *out)
{
    *out = (struct tr_file_map){0};
    int descriptor;
    uint64_t size;
    TR_TRY(tr_file_open(path, &descriptor, &size));
    tr_status status = tr_file_map_open(descriptor, path, size, out);
    close(descriptor); /* the mapping stays valid */
    return status;
}

void tr_file_map_leave(const struct tr_file_map *map)
{
    if (map->data) madvise((void *)map->data, map->size, MADV_DONTNEED);
}

void tr_file_unmap(struct tr_file_map *map)
{
    if (map->data) {
        tr_mapped_remove(map->data);
        munmap((void *)map->data, map->size);
    }
    *map = (struct tr_file_map){0};
}

tr_status tr_file_lock(const char *directory, int *descriptor)
{
    *descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*descriptor < 0) return errno == EACCES ? TR_OK : tr_file_failure("open", directory, errno);
    int result;
    do result = flock(*descriptor, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result == 0) return TR_OK;
    bool taken = errno == EWOULDBLOCK;
    close(*descriptor);
    *descriptor = -1;
    if (!taken) return TR_OK;
    return tr_fail(TR_EIO, "\"%s\" is in use by another process; wait for it or choose another directory",
                   directory);
}

enum tr_file_whereabouts tr_file_find(int descriptor, const char *path)
{
    struct stat own, there;
    if (fstat(descriptor, &own) != 0) return TR_FILE_REMOVED;
    if (stat(path, &there) == 0 && there.st_dev == own.st_dev && there.st_ino == own.st_ino)
        return TR_FILE_THERE;
    return own.st_nlink == 0 ? TR_FILE_REMOVED : TR_FILE_MOVED;
}

char *tr_file_descriptor_path(int descriptor)
{
    char link[40], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || path[0] != '/') return NULL;
    path[length] = '\0';
    return tr_strdup(path);
}

tr_status tr_file_replace_begin(const tr_file_system *files, const char *path, uint64_t expected,
                                struct tr_file_replacement *out)
{
    *out = (struct tr_file_replacement){.files = files, .path = path, .writer.descriptor = -1};
    /* A rename would replace /dev/null, say, by a file when root runs it. */
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        if (S_ISDIR(facts.st_mode)) return tr_file_failure("write", path, EISDIR);
        return tr_file_begin(files, path, TR_FILE_EXISTING, expected, &out->writer);
    }
    out->parent = tr_path_parent(path);
    out->aside = tr_format("%s.%ld.tmp", path, (long)getpid());
    tr_status status = TR_ENOMEM;
    if (out->parent && out->aside)
        status = tr_file_begin(files, out->aside, TR_FILE_REPLACE, expected, &out->writer);
    if (status == TR_EIO && !files && !tr_file_is_directory(out->parent))
        status = tr_fail(TR_ENOTFOUND, "write \"%s\": there is no directory \"%s\"; check the path", path,
                         out->parent);
    if (status != TR_OK) tr_file_replace_abandon(out);
    return status;
}

tr_status tr_file_replace_finish(struct tr_file_replacement *file)
{
    tr_status status = tr_file_finish(&file->writer, true);
    if (file->aside) {
        if (status == TR_OK) status = tr_file_rename(file->files, file->aside, file->path);
        if (status == TR_OK) {
            tr_free(file->aside);
            file->aside = NULL;
            status = tr_file_sync_directory(file->files, file->parent);
        }
    }
    tr_file_replace_abandon(file);
    return status;
}

void tr_file_replace_abandon(struct tr_file_replacement *file)
{
    tr_file_abandon(&file->writer);
    if (file->aside) tr_file_discard(file->files, file->aside);
    tr_free(file->aside);
    tr_free(file->parent);
    file->aside = file->parent = NULL;
}

tr_status tr_file_replace_check(const char *path)
{
    struct tr_file_replacement trial;
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) return TR_OK;
    TR_TRY(tr_file_replace_begin(NULL, path, 0, &trial));
    tr_file_replace_abandon(&trial);
    return TR_OK;
}

tr_status tr_file_write_atomic(const tr_file_system *files, const char *path, const void *data, size_t size)
{
    struct tr_file_replacement file;
    TR_TRY(tr_file_replace_begin(files, path, size, &file));
    tr_status status = tr_file_write(&file.writer, data, size);
    if (status == TR_OK) return tr_file_replace_finish(&file);
    tr_file_replace_abandon(&file);
    return status;
}
