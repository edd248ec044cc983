/* The structure of a TensorBoard run, shared by its figures, samples and hyperparameters. */
#ifndef TR_TRAIN_TENSORBOARD_INTERNAL_H
#define TR_TRAIN_TENSORBOARD_INTERNAL_H

#include "io/events.h"
#include "train/observe/tensorboard.h"

struct tr_tensorboard {
    const struct tr_job *job;
    tr_device *device;
    char *directory;
    int64_t first_step; /* earlier files count up to here, exclusively */
    tr_events *run;
    tr_events *set[TR_SETS]; /* made when first needed */
    int64_t last_step;       /* last step with a value */
    bool failed;             /* nothing more is written */
};

/* Adds the samples; see tr_tensorboard_samples(). */
tr_status tensorboard_add_samples(tr_tensorboard *board, const char *when, const float *parameters);
/* Adds the beginning of the session with its hyperparameters. */
tr_status tensorboard_begin_session(tr_tensorboard *board, const struct tr_tensorboard_settings *settings);

#endif
