/* A run for TensorBoard: its event files, written from the trainer's events.
 *
 *     DIRECTORY/              the run: scalars, histograms, graph, samples, the job as text, hyperparameters
 *     DIRECTORY/test/         evaluations on the test data; likewise validation
 *
 * Evaluations have the tags of the run, so that their curves share a chart. A resumed run adds files, and
 * discards values of earlier files for the steps that it repeats.
 */
#ifndef TR_TRAIN_TENSORBOARD_H
#define TR_TRAIN_TENSORBOARD_H

#include "job/job.h"
#include "train/observe/probe.h"
#include "trireme/train.h"

typedef struct tr_tensorboard tr_tensorboard;

struct tr_tensorboard_settings {
    const char *directory; /* made if it is missing */
    const struct tr_job *job;
    tr_device *device;
    int64_t step; /* steps done before */
    const char *strategy;
    int ranks;
};

/* Begins a run: its graph, text and hyperparameters. The strings are borrowed for the call, job and device
   until closing. Returned, end with tr_tensorboard_close(). TR_EIO names the directory. */
tr_status tr_tensorboard_create(const struct tr_tensorboard_settings *settings, tr_tensorboard **out);
/* Ends the run, well or not, and closes its files; nulls the handle, also on failure. Accepts NULL. */
tr_status tr_tensorboard_close(tr_tensorboard **board, bool success);

/* Writes the figures of steps and evaluations; ignores other events. After a failure of this or the
   functions below, which is TR_EIO or TR_ENOMEM, only closing is allowed. */
tr_status tr_tensorboard_event(tr_tensorboard *board, const struct tr_train_event *event);
/* Writes the histograms of `look` after `step` steps. */
tr_status tr_tensorboard_histograms(tr_tensorboard *board, int64_t step, const tr_probe *probe);
/* Writes the first examples of the first batch with their labels and the predictions of the network, with
   an arena of `parameters` in device memory; `when` begins their tags. Does nothing for vectors of
   numbers. */
tr_status tr_tensorboard_samples(tr_tensorboard *board, int64_t step, const char *when,
                                 const float *parameters);

#endif
