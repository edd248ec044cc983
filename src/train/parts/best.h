/* What a run knows of its evaluations: whether it gets better, and which one is the best so far, whose
 * weights are kept. Kept in checkpoints, so that a run that is taken up decides as it would have. */
#ifndef TR_TRAIN_BEST_H
#define TR_TRAIN_BEST_H

#include "checkpoint/checkpoint.h"
#include "job/file/options.h"
#include "trireme/train.h"

struct trainer_best {
    const char *monitor;       /* the figure that judges, job/file/monitor.h; borrowed */
    double least_cost;         /* of that figure */
    int64_t worse_evaluations; /* since the one with that */
    double last_accuracy;      /* of the latest evaluation */
    struct {
        int64_t step; /* steps done then; -1: there is none yet */
        double loss, accuracy, figure;
    } kept; /* the evaluation whose weights are kept */
};

/* There was no evaluation yet. `monitor` (NULL: the loss) is borrowed for the life of the part. */
void trainer_best_begin(struct trainer_best *best, const char *monitor);
/* What an evaluation found of a figure; NaN where it did not measure it. */
double trainer_best_figure(const char *monitor, const struct tr_train_event *event);
/* No weights are kept any more. */
void trainer_best_forget(struct trainer_best *best);

/* An evaluation that may end the run. */
void trainer_best_evaluated(struct trainer_best *best, const struct tr_train_event *event);
/* Whether the run ends before its last step, by what it has heard so far. */
bool trainer_best_ends_early(const struct trainer_best *best, const struct tr_train_options *train);

/* Whether an evaluation is better than the one whose weights are kept, in a run that keeps the best: by the
   figure that it names, else by what it waits for, an accuracy, else by the loss. Of equal ones the lower
   loss is better, of equal losses the earlier one. */
bool trainer_best_is_better(const struct trainer_best *best, const struct tr_train_options *train,
                            const struct tr_train_event *event);
/* Its weights are those that are kept. */
void trainer_best_keep(struct trainer_best *best, const struct tr_train_event *event);

/* ---- in checkpoints ---- */

#define TRAINER_BEST_METRICS 7
#define TRAINER_BEST_NAME    64
/* Writes what is known, under names of which some are written to `name`, and returns how many. Figures of
   another monitor than the loss have its name, so that a run that has another one does not take them. */
int64_t trainer_best_write(const struct trainer_best *best,
                           struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS],
                           char name[2][TRAINER_BEST_NAME]);
/* Takes what a checkpoint says; other metrics, and values that cannot be, are passed over. */
void trainer_best_read(struct trainer_best *best, const struct tr_checkpoint_metric *metric);

#endif
