/* The output directory of a trainer: taken by one process at a time, and what this trainer saved there. */
#ifndef TR_TRAIN_DIRECTORY_H
#define TR_TRAIN_DIRECTORY_H

#include "checkpoint/checkpoint.h"

struct trainer_directory {
    char *path;         /* NULL: nothing is saved */
    int lock;           /* descriptor that holds the directory for this trainer, or -1 */
    bool displaced;     /* it has been moved, and the run ends */
    int64_t saved_step; /* step of the newest checkpoint of this run, -1: none */
    double saved_at;    /* tr_clock_seconds() of it */
    char *checkpoint;   /* the path of the newest one that was reported, on the root, or NULL */
};

/* Nothing is held. Then trainer_directory_release(). */
void trainer_directory_begin(struct trainer_directory *directory);
/* Lets go of the directory, which stays. */
void trainer_directory_release(struct trainer_directory *directory);

/* Whether there is a directory, and this run has not saved step `step` there. */
static inline bool trainer_directory_lacks(const struct trainer_directory *directory, int64_t step)
{
    return directory->path && directory->saved_step != step;
}

/* Takes the directory at `path` for this process, and makes it if need be. TR_EIO where that cannot be, or
   another process has it. */
tr_status trainer_directory_take(struct trainer_directory *directory);
/* The same where the process that had it has died, whose lock may be seen a moment longer than it lives. */
tr_status trainer_directory_take_over(struct trainer_directory *directory);

/* The file system in which paths in the directory are looked up where it was taken, wherever it has been
   moved to. `anchor` is the caller's, and stays as long. */
tr_file_system trainer_directory_files(const struct trainer_directory *directory,
                                       struct tr_file_anchor *anchor);

/* Writes a checkpoint of `keep` that are kept, and marks it where it is the `best`; *path is returned, free
   with tr_free(). The directory may be moved at any moment, and another run may take its place: what is
   written goes to the one that was taken. Where it has been moved `displaced` is set, the checkpoint is
   written, and TR_EIO says where; one that was removed is made anew. Errors of tr_checkpoint_save(). */
tr_status trainer_directory_save(struct trainer_directory *directory, int64_t keep,
                                 const struct tr_checkpoint_content *content, bool best, char **path);

#endif
