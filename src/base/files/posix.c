/* The machine's file system behind the table of base/files/ops.h. */
#include "base/files/ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Linux writes at most 2 GiB less a page in one call; a smaller piece keeps the messages about progress
 * useful. */
#define WRITE_PIECE ((size_t)256 << 20)

/* A path in the form of the *at() calls. */
struct at_path {
    int directory;
    const char *path;
};

static struct at_path find(const void *context, const char *path)
{
    const struct tr_file_anchor *anchor = context;
    size_t length = anchor ? strlen(anchor->path) : 0;
    while (length > 1 && anchor->path[length - 1] == '/') length--;
    bool inside = length > 0 && strncmp(path, anchor->path, length) == 0 &&
                  (path[length] == '/' || path[length] == '\0');
    if (!inside) return (struct at_path){AT_FDCWD, path};
    path += length + strspn(path + length, "/");
    return (struct at_path){anchor->descriptor, *path ? path : "."};
}

/* 0 for a regular file, which is truncated if requested. */
static int prepare(int descriptor, enum tr_file_create create)
{
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) return -errno;
    if (!S_ISREG(facts.st_mode)) return -ENXIO;
    return create == TR_FILE_REPLACE && ftruncate(descriptor, 0) != 0 ? -errno : 0;
}

/* Without O_NONBLOCK the open of a pipe would wait for a reader. */
static int posix_open(void *context, const char *path, enum tr_file_create create)
{
    struct at_path at = find(context, path);
    static const int flags[] = {[TR_FILE_NEW] = O_CREAT | O_EXCL,
                                [TR_FILE_REPLACE] = O_CREAT | O_NOFOLLOW | O_NONBLOCK,
                                [TR_FILE_APPEND] = O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK,
                                [TR_FILE_EXISTING] = 0};
    int descriptor;
    do descriptor = openat(at.directory, at.path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags[create], 0666);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return -errno;
    int result = create == TR_FILE_EXISTING ? 0 : prepare(descriptor, create);
    if (result == 0) return descriptor;
    close(descriptor);
    return result;
}

/* Beyond the file size limit the kernel sends the writing thread SIGXFSZ, which ends the process by
   default. A library must not change the process's signal dispositions, so the signal is blocked and then
   discarded. */
static int64_t posix_write(void *context, int descriptor, const void *data, size_t size)
{
    (void)context;
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    ssize_t written = write(descriptor, data, size < WRITE_PIECE ? size : WRITE_PIECE);
    int error = errno;
    if (written < 0 && error == EFBIG && !was_pending) {
        const struct timespec now = {0, 0};
        sigtimedwait(&limit, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written < 0 ? -error : written;
}

/* Devices, pipes and some network file systems cannot sync, which is not a failure. */
static int sync_result(int result)
{
    if (result == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0;
    return -errno;
}

static int posix_sync(void *context, int descriptor)
{
    (void)context;
    int result;
    do result = fsync(descriptor);
    while (result != 0 && errno == EINTR);
    return sync_result(result);
}

static int posix_end(void *context, int descriptor)
{
    (void)context;
    /* On Linux the descriptor is closed even after EINTR. */
    return close(descriptor) == 0 || errno == EINTR ? 0 : -errno;
}

static int posix_rename(void *context, const char *from, const char *to)
{
    struct at_path source = find(context, from), target = find(context, to);
    return renameat(source.directory, source.path, target.directory, target.path) == 0 ? 0 : -errno;
}

static int posix_make_directory(void *context, const char *path)
{
    struct at_path at = find(context, path);
    return mkdirat(at.directory, at.path, 0777) == 0 ? 0 : -errno;
}

static int posix_remove_file(void *context, const char *path)
{
    struct at_path at = find(context, path);
    return unlinkat(at.directory, at.path, 0) == 0 ? 0 : -errno;
}

static int posix_remove_directory(void *context, const char *path)
{
    struct at_path at = find(context, path);
    return unlinkat(at.directory, at.path, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

static int posix_sync_directory(void *context, const char *path)
{
    struct at_path at = find(context, path);
    int descriptor = openat(at.directory, at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A directory that may be written but not read cannot be opened, and so not synced. */
    if (descriptor < 0) return errno == EACCES ? 0 : -errno;
    int result = posix_sync(context, descriptor);
    close(descriptor);
    return result;
}

static int posix_list(void *context, const char *path, int (*visit)(void *user, const char *name), void *user)
{
    struct at_path at = find(context, path);
    int descriptor = openat(at.directory, at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (!directory) {
        int error = errno;
        if (descriptor >= 0) close(descriptor);
        return -error;
    }
    int result = 0;
    while (result == 0) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            result = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        result = visit(user, entry->d_name);
    }
    closedir(directory);
    return result;
}

static int posix_make_link(void *context, const char *text, const char *path)
{
    struct at_path at = find(context, path);
    return symlinkat(text, at.directory, at.path) == 0 ? 0 : -errno;
}

static int posix_read_link(void *context, const char *path, char *text, size_t size)
{
    struct at_path at = find(context, path);
    ssize_t length = readlinkat(at.directory, at.path, text, size);
    if (length < 0) return -errno;
    if ((size_t)length == size) return -ENAMETOOLONG;
    text[length] = '\0';
    return 0;
}

const struct tr_file_ops tr_file_ops_posix = {
    .name = "posix",
    .version = TR_FILE_OPS_VERSION,
    .open = posix_open,
    .write = posix_write,
    .sync = posix_sync,
    .close = posix_end,
    .rename = posix_rename,
    .make_directory = posix_make_directory,
    .remove_file = posix_remove_file,
    .remove_directory = posix_remove_directory,
    .sync_directory = posix_sync_directory,
    .list = posix_list,
    .make_link = posix_make_link,
    .read_link = posix_read_link,
};
