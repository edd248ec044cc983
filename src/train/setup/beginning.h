/* The start of a trainer: a checkpoint to resume, or parameters of another run. */
#ifndef TR_TRAIN_BEGINNING_H
#define TR_TRAIN_BEGINNING_H

#include "checkpoint/checkpoint.h"

struct trainer_beginning {
    char *resumed;         /* path of the checkpoint, or NULL */
    int64_t step;          /* its steps, where settings equal those it was made with; else -1 */
    char *resume_warnings; /* lines: skipped checkpoints, and missing parts; or NULL */
    char *start_summary;   /* the parameters' origin, or NULL */
};

/* Initial values. Then trainer_beginning_release(). */
void trainer_beginning_begin(struct trainer_beginning *beginning);
void trainer_beginning_release(struct trainer_beginning *beginning);
/* With a checkpoint, of this job if `same`. TR_ENOMEM. */
tr_status trainer_beginning_resume(struct trainer_beginning *beginning, const tr_checkpoint *checkpoint,
                                   bool same);
/* Adds a line to the note on what was resumed. TR_ENOMEM. */
tr_status trainer_beginning_add_note(struct trainer_beginning *beginning, const char *line);

#endif
