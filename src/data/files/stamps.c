#include "data/files/stamps.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* A change so soon after a stamp may leave the stamp equal: the clocks of file systems advance in steps of
   some milliseconds, that of FAT in steps of two seconds. */
#define SETTLED_SECONDS 3

char *tr_source_path(const char *directory, const char *path)
{
    return directory && path[0] != '/' ? tr_path_join(directory, path) : tr_strdup(path);
}

tr_status tr_source_files_add(struct tr_source_files *files, const char *directory, const char *path)
{
    char *full = tr_source_path(directory, path);
    if (!full) return TR_ENOMEM;
    if (!tr_grow(&files->file, files->count, sizeof *files->file)) {
        tr_free(full);
        return TR_ENOMEM;
    }
    files->file[files->count++] = (struct tr_source_file){.path = full};
    return TR_OK;
}

void tr_source_files_release(struct tr_source_files *files)
{
    for (int64_t i = 0; i < files->count; i++) tr_free(files->file[i].path);
    tr_free(files->file);
    *files = (struct tr_source_files){0};
}

static int look(const char *path, struct tr_file_stamp *stamp)
{
    struct stat facts;
    if (stat(path, &facts) != 0) return errno;
    *stamp = (struct tr_file_stamp){
        .device = (uint64_t)facts.st_dev,
        .inode = (uint64_t)facts.st_ino,
        .size = (uint64_t)facts.st_size,
        .modified = {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec},
        .changed = {facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec},
        .directory = S_ISDIR(facts.st_mode),
    };
    return 0;
}

tr_status tr_source_files_stamp(struct tr_source_files *files)
{
    for (int64_t i = 0; i < files->count; i++) {
        int error = look(files->file[i].path, &files->file[i].stamp);
        if (error == 0) continue;
        tr_status status = tr_file_failure("open", files->file[i].path, error);
        return error == ENOENT || error == ENOTDIR ? TR_ENOTFOUND : status;
    }
    return TR_OK;
}

/* File systems whose times this machine's kernel keeps, as statfs(2) numbers them. On network file systems
   a server keeps the times, by its own clock and at its own intervals; others have no time that only the
   kernel can set. */
static bool keeps_times(const char *path)
{
    static const uint32_t known[] = {
        0xef53,     /* ext2 to ext4 */
        0x58465342, /* XFS */
        0x9123683e, /* Btrfs */
        0x01021994, /* tmpfs */
        0x794c7630, /* overlayfs */
        0x2fc12fc1, /* ZFS */
        0xf2f52010, /* F2FS */
        0xca451a4e, /* bcachefs */
        0x73717368, /* SquashFS */
        0xe0f5e1e2, /* EROFS */
    };
    struct statfs facts;
    if (statfs(path, &facts) != 0) return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((uint32_t)facts.f_type == known[i]) return true;
    return false;
}

bool tr_source_files_settled(const struct tr_source_files *files, int64_t now)
{
    uint64_t device = 0;
    for (int64_t i = 0; i < files->count; i++) {
        const struct tr_file_stamp *stamp = &files->file[i].stamp;
        /* A time in the future: a clock was set. */
        if (stamp->changed[0] > now - SETTLED_SECONDS || stamp->modified[0] > now - SETTLED_SECONDS)
            return false;
        if ((i == 0 || stamp->device != device) && !keeps_times(files->file[i].path)) return false;
        device = stamp->device;
    }
    return true;
}

const char *tr_source_files_changed(const struct tr_source_files *files)
{
    for (int64_t i = 0; i < files->count; i++) {
        const struct tr_file_stamp *then = &files->file[i].stamp;
        struct tr_file_stamp now = {0};
        /* The time of attributes (ctime) is left out: another link or other permissions do not change the
           contents. */
        if (look(files->file[i].path, &now) != 0 || now.device != then->device || now.inode != then->inode ||
            now.size != then->size || memcmp(now.modified, then->modified, sizeof now.modified) != 0)
            return files->file[i].path;
    }
    return NULL;
}

int64_t tr_source_files_bytes(const struct tr_source_files *files)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < files->count; i++)
        if (!files->file[i].stamp.directory) bytes += (int64_t)files->file[i].stamp.size;
    return bytes;
}

void tr_source_files_add_stamps(const struct tr_source_files *files, tr_sha256 *hash)
{
    for (int64_t i = 0; i < files->count; i++) {
        const struct tr_file_stamp *stamp = &files->file[i].stamp;
        const uint64_t numbers[] = {stamp->device,
                                    stamp->inode,
                                    stamp->size,
                                    (uint64_t)stamp->modified[0],
                                    (uint64_t)stamp->modified[1],
                                    (uint64_t)stamp->changed[0],
                                    (uint64_t)stamp->changed[1]};
        tr_sha256_add(hash, numbers, sizeof numbers);
    }
}

/* "cats/1.png" of "/data/cats/1.png": the part of a path that a format may use, wherever the data set
   lies. */
static const char *last_two(const char *path)
{
    const char *name = tr_path_name(path);
    if (name - path < 2) return name;
    const char *at = name - 1;
    while (at > path && at[-1] != '/') at--;
    return at;
}

static tr_status add_content(const char *path, tr_sha256 *hash)
{
    enum { PIECE = 1 << 18 };
    int descriptor;
    uint64_t size;
    TR_TRY(tr_file_open(path, &descriptor, &size));
    tr_status status = TR_OK;
    uint8_t *piece = tr_alloc(PIECE, 1);
    if (!piece) status = TR_ENOMEM;
    tr_sha256_add(hash, &size, sizeof size);
    for (uint64_t at = 0; status == TR_OK && at < size;) {
        size_t wanted = size - at < PIECE ? (size_t)(size - at) : PIECE;
        status = tr_file_read_at(descriptor, path, at, piece, wanted);
        if (status == TR_OK) tr_sha256_add(hash, piece, wanted);
        at += wanted;
    }
    tr_free(piece);
    close(descriptor);
    return status;
}

tr_status tr_source_files_add_contents(const struct tr_source_files *files, tr_sha256 *hash)
{
    for (int64_t i = 0; i < files->count; i++) {
        const char *path = files->file[i].path, *name = last_two(path);
        tr_sha256_add(hash, name, strlen(name) + 1);
        if (!files->file[i].stamp.directory) TR_TRY(add_content(path, hash));
    }
    return TR_OK;
}
