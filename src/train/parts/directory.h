/* The output directory of a trainer: locked by one process at a time, and this trainer's checkpoints
   there. */
#ifndef TR_TRAIN_DIRECTORY_H
#define TR_TRAIN_DIRECTORY_H

#include "checkpoint/checkpoint.h"

struct trainer_directory {
    char *path;         /* NULL: nothing is saved */
    int lock;           /* descriptor that holds the lock, or -1 */
    bool displaced;     /* it has been moved, and the run ends */
    int64_t saved_step; /* step of the newest checkpoint of this run, -1: none */
    double saved_at;    /* tr_clock_seconds() of it */
    char *checkpoint;   /* the path of the newest one that was reported, on the root, or NULL */
};

/* Nothing is held. Then trainer_directory_release(). */
void trainer_directory_begin(struct trainer_directory *directory);
/* Unlocks the directory. */
void trainer_directory_release(struct trainer_directory *directory);

/* Whether there is a directory, and this run has not saved step `step` there. */
static inline bool trainer_directory_lacks(const struct trainer_directory *directory, int64_t step)
{
    return directory->path && directory->saved_step != step;
}

/* Locks the directory at `path` for this process, and makes it if needed. TR_EIO where that is not
   possible, or another process has it. */
tr_status trainer_directory_take(struct trainer_directory *directory);
/* The same after the death of the process that had it, whose lock may be visible slightly longer. */
tr_status trainer_directory_take_over(struct trainer_directory *directory);

/* The file system that looks up paths in the directory where it was when locked, wherever it was moved.
   `anchor` is the caller's, and must live as long. */
tr_file_system trainer_directory_files(const struct trainer_directory *directory,
                                       struct tr_file_anchor *anchor);

/* Writes a checkpoint of `keep` that are kept, and marks it where it is the `best`; *path is returned,
   free with tr_free(). The directory may be moved at any moment, and another run may take its place: the
   checkpoint goes to the locked one. If it was moved, `displaced` is set, the checkpoint is written, and
   TR_EIO says where; if it was removed, it is made anew. Errors of tr_checkpoint_save(). */
tr_status trainer_directory_save(struct trainer_directory *directory, int64_t keep,
                                 const struct tr_checkpoint_content *content, bool best, char **path);

#endif
