#include "base/scratch_dir.h"

#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "trireme-"
/* A directory gets the name of its kind once it is locked. One without the name is at most this old while
 * its creator lives.
 */
#define UNNAMED       "new"
#define YOUNG_SECONDS 60
#define KIND_MOST     16

static const char *const above[] = {"/dev/shm", "/tmp"};
#define ABOVE (sizeof above / sizeof above[0])

int64_t tr_scratch_dir_room(const char *path)
{
    struct statfs facts;
    if (statfs(path, &facts) != 0) return -1;
    if (facts.f_blocks == 0) return INT64_MAX; /* a file system in memory without a limit */
    uint64_t unit = facts.f_frsize > 0 ? (uint64_t)facts.f_frsize : 1, most = INT64_MAX / unit;
    return (int64_t)((facts.f_bavail < most ? facts.f_bavail : most) * unit);
}

/* ---- what is left of those that were killed ---- */

/* A directory of another user is never one of ours, whatever its name. */
static void remove_abandoned(const char *path, bool named)
{
    struct stat facts;
    int lock = -1;
    if (lstat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid()) return;
    if (!named && time(NULL) - facts.st_mtime < YOUNG_SECONDS) return;
    if (tr_file_lock(path, &lock) == TR_OK && lock >= 0) tr_file_discard(NULL, path);
    if (lock >= 0) close(lock);
}

static void sweep(const char *directory, const char *kind)
{
    char start[KIND_MOST + sizeof PREFIX + 1];
    struct tr_file_names names;
    snprintf(start, sizeof start, PREFIX "%s-", kind);
    if (tr_file_list(NULL, directory, &names) != TR_OK) return;
    for (int64_t i = 0; i < names.count; i++) {
        char path[TR_SCRATCH_DIR_PATH];
        if (strncmp(names.name[i], start, strlen(start)) != 0) continue;
        int length = snprintf(path, sizeof path, "%s/%s", directory, names.name[i]);
        if (length > 0 && (size_t)length < sizeof path) remove_abandoned(path, strcmp(kind, UNNAMED) != 0);
    }
    tr_file_names_free(&names);
}

void tr_scratch_dir_sweep(const char *kind)
{
    struct tr_failure kept;
    tr_failure_keep(&kept, TR_OK);
    for (size_t i = 0; i < ABOVE; i++) {
        sweep(above[i], kind);
        sweep(above[i], UNNAMED);
    }
    tr_failure_restore(&kept);
}

/* ---- making ---- */

/* The name of the kind comes last, so that other processes never find an unlocked directory of the kind. */
static bool make_in(const char *directory, const char *kind, struct tr_scratch_dir *dir)
{
    char unnamed[TR_SCRATCH_DIR_PATH];
    snprintf(unnamed, sizeof unnamed, "%s/" PREFIX UNNAMED "-XXXXXX", directory);
    if (!mkdtemp(unnamed)) return false;
    const char *random = unnamed + strlen(unnamed) - strlen("XXXXXX");
    snprintf(dir->path, sizeof dir->path, "%s/" PREFIX "%s-%s", directory, kind, random);
    if (tr_file_lock(unnamed, &dir->lock) == TR_OK && rename(unnamed, dir->path) == 0) return true;
    rmdir(unnamed);
    if (dir->lock >= 0) close(dir->lock);
    *dir = (struct tr_scratch_dir)TR_SCRATCH_DIR_NONE;
    return false;
}

static const char *say_room(int64_t room, char text[TR_TEXT_NUMBER_SIZE])
{
    return room < 0 ? "an unknown number of bytes" : tr_text_from_bytes(room, text);
}

tr_status tr_scratch_dir_make(const char *kind, int64_t room, struct tr_scratch_dir *dir)
{
    char wanted[TR_TEXT_NUMBER_SIZE], there[ABOVE][TR_TEXT_NUMBER_SIZE];
    *dir = (struct tr_scratch_dir)TR_SCRATCH_DIR_NONE;
    tr_scratch_dir_sweep(kind);
    for (size_t i = 0; i < ABOVE; i++)
        if (tr_scratch_dir_room(above[i]) >= room && make_in(above[i], kind, dir)) return TR_OK;
    return tr_fail(
        TR_EIO,
        "no place for files of this host's processes: %s are needed; %s has %s free, %s has %s; make room "
        "in one of them that can be written",
        tr_text_from_bytes(room, wanted), above[0], say_room(tr_scratch_dir_room(above[0]), there[0]),
        above[1], say_room(tr_scratch_dir_room(above[1]), there[1]));
}

void tr_scratch_dir_remove(struct tr_scratch_dir *dir)
{
    if (dir->path[0]) tr_file_discard(NULL, dir->path);
    if (dir->lock >= 0) close(dir->lock);
    *dir = (struct tr_scratch_dir)TR_SCRATCH_DIR_NONE;
}
