#include "train/parts/directory.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "base/threads/clock.h"
#include "receipt/receipt.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* A process's lock ends with it, but may be visible slightly longer. */
#define LOCK_SECONDS 10.0
#define NAP_SECONDS  0.01

void trainer_directory_begin(struct trainer_directory *directory)
{
    *directory = (struct trainer_directory){.lock = -1, .saved_step = -1, .saved_at = tr_clock_seconds()};
}

void trainer_directory_release(struct trainer_directory *directory)
{
    tr_free(directory->path);
    tr_free(directory->checkpoint);
    if (directory->lock >= 0) close(directory->lock);
    trainer_directory_begin(directory);
}

tr_status trainer_directory_take(struct trainer_directory *directory)
{
    TR_TRY(tr_file_make_directories(NULL, directory->path));
    return tr_file_lock(directory->path, &directory->lock);
}

tr_status trainer_directory_take_over(struct trainer_directory *directory)
{
    double end = tr_clock_seconds() + LOCK_SECONDS;
    for (;;) {
        tr_status status = trainer_directory_take(directory);
        if (status != TR_EIO || tr_clock_seconds() > end) return status;
        nanosleep(&(struct timespec){.tv_nsec = (long)(NAP_SECONDS * 1e9)}, NULL);
    }
}

/* ---- saving ---- */

static tr_status find(struct trainer_directory *directory)
{
    enum tr_file_whereabouts now =
        directory->lock >= 0 ? tr_file_find(directory->lock, directory->path) : TR_FILE_THERE;
    directory->displaced = now == TR_FILE_MOVED;
    if (now != TR_FILE_REMOVED) return TR_OK;
    if (tr_file_exists(directory->path)) {
        directory->displaced = true;
        return tr_fail(TR_EIO,
                       "\"%s\" is another directory than the one that this run wrote to, which was removed; "
                       "nothing is saved",
                       directory->path);
    }
    tr_log_line(TR_LOG_WARNING, "\"%s\" was removed, and is made anew", directory->path);
    close(directory->lock);
    directory->lock = -1;
    return trainer_directory_take(directory);
}

/* A receipt is written beside the checkpoints, too, and before the checkpoint it belongs to: so it always
   covers the newest one. */
static tr_status write_receipt(const tr_file_system *files, const char *directory,
                               const struct tr_checkpoint_content *content)
{
    for (int64_t i = 0; i < content->file_count; i++) {
        const struct tr_checkpoint_file *file = &content->files[i];
        if (strcmp(file->name, TR_RECEIPT_FILE) != 0) continue;
        char *path = tr_path_join(directory, file->name);
        tr_status status = path ? tr_file_write_atomic(files, path, file->data, file->size) : TR_ENOMEM;
        tr_free(path);
        return status;
    }
    return TR_OK;
}

/* A checkpoint was saved in a directory that has been moved. */
static tr_status say_where(const struct trainer_directory *directory, int64_t step)
{
    char *path = tr_file_descriptor_path(directory->lock);
    tr_status status =
        tr_fail(TR_EIO,
                "\"%s\" is no longer the directory that this run writes to, which was moved%s%s; "
                "the checkpoint of step %lld is there, to resume from",
                directory->path, path ? " to " : "", path ? path : "", (long long)step);
    tr_free(path);
    return status;
}

tr_file_system trainer_directory_files(const struct trainer_directory *directory,
                                       struct tr_file_anchor *anchor)
{
    *anchor = (struct tr_file_anchor){directory->path, directory->lock};
    return (tr_file_system){&tr_file_ops_posix, directory->lock >= 0 ? anchor : NULL};
}

tr_status trainer_directory_save(struct trainer_directory *directory, int64_t keep,
                                 const struct tr_checkpoint_content *content, bool best, char **path)
{
    TR_TRY(find(directory));
    struct tr_file_anchor anchor;
    const tr_file_system held = trainer_directory_files(directory, &anchor), *files = &held;
    TR_TRY(write_receipt(files, directory->path, content));
    TR_TRY(tr_checkpoint_save(files, directory->path, keep, content, path));
    tr_status status = TR_OK;
    if (best) status = tr_checkpoint_mark_best(files, directory->path, tr_path_name(*path));
    if (status == TR_OK && directory->displaced) status = say_where(directory, content->facts.step);
    if (status == TR_OK) return TR_OK;
    tr_free(*path);
    *path = NULL;
    return status;
}
