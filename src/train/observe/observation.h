/* Observing a run: what a trainer shows of itself to TensorBoard, and when.
 *
 * All ranks decide alike which steps are looked at; the root writes. Files that cannot be written any more
 * end the writing, not the run.
 */
#ifndef TR_TRAIN_OBSERVATION_H
#define TR_TRAIN_OBSERVATION_H

#include "train/observe/tensorboard.h"

/* Plain memory, a part of the trainer. */
struct tr_observation {
    char *directory;       /* of event files; NULL: nothing is observed */
    int64_t histograms;    /* steps from one to the next; 0: none */
    tr_probe *probe;       /* of every rank that steps together with others, and of the root */
    tr_tensorboard *board; /* the root's, from the start of a run to its end; NULL after a failure */
    int64_t stride;        /* steps that the last call of the strategy made */
    bool looked;           /* at the last step */
    bool due;              /* its histograms are written */
    char *problem;         /* why nothing is written any more, until somebody told it; else NULL */
};

/* Notes what the settings ask for. TR_EINVAL. */
tr_status trainer_observe(tr_trainer *trainer, const struct tr_train_settings *settings);
/* Accepts what was never made; before the strategy. */
void trainer_observe_release(tr_trainer *trainer);
/* All ranks have begun; they must want the same. Collective. */
tr_status trainer_observe_meet(tr_trainer *trainer);

/* A run starts. TR_EIO where files cannot be written. */
tr_status trainer_observe_start(tr_trainer *trainer);
/* In a run under way, this rank became the root, whose events go on in a file of their own. Local. */
void trainer_observe_take_over(tr_trainer *trainer);
/* The next step is about to be made. */
void trainer_observe_next(tr_trainer *trainer);
/* It was made. Collective, where the ranks step together. */
tr_status trainer_observe_step(tr_trainer *trainer, const struct tr_step_figures *figures);
/* What the listener is told. */
void trainer_observe_event(tr_trainer *trainer, const struct tr_train_event *event);
/* The run has done all its steps. Collective likewise. */
tr_status trainer_observe_finish(tr_trainer *trainer);
/* The run ended with `status`. */
void trainer_observe_end(tr_trainer *trainer, tr_status status);

#endif
