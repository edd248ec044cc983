/* A run's evaluations so far: whether they improve, and which one is the best, whose weights are kept.
 * Stored in checkpoints, so that a resumed run decides as it would have.
 */
#ifndef TR_TRAIN_BEST_H
#define TR_TRAIN_BEST_H

#include "checkpoint/checkpoint.h"
#include "job/file/options.h"
#include "trireme/train.h"

struct trainer_best {
    const char *monitor;       /* the figure that judges, job/file/monitor.h; borrowed */
    double least_cost;         /* of that figure */
    int64_t worse_evaluations; /* since the evaluation with that */
    double last_accuracy;      /* of the latest evaluation */
    struct {
        int64_t step; /* steps done then; -1: there is none yet */
        double loss, accuracy, figure;
    } kept; /* the evaluation whose weights are kept */
};

/* There was no evaluation yet. `monitor` (NULL: the loss) is borrowed for the life of the part. */
void trainer_best_begin(struct trainer_best *best, const char *monitor);
/* An evaluation's value of a figure; NaN where it was not measured. */
double trainer_best_figure(const char *monitor, const struct tr_train_event *event);
/* No weights are kept any more. */
void trainer_best_forget(struct trainer_best *best);

/* Notes an evaluation that may end the run. */
void trainer_best_evaluated(struct trainer_best *best, const struct tr_train_event *event);
/* Whether the run ends before its last step, by the evaluations so far. */
bool trainer_best_ends_early(const struct trainer_best *best, const struct tr_train_options *train);

/* Whether an evaluation is better than the one whose weights are kept, in a run that keeps the best: by
   the figure that it names, else by the accuracy that it waits for, else by the loss. Of equal ones the
   lower loss is better; of equal losses the earlier evaluation. */
bool trainer_best_is_better(const struct trainer_best *best, const struct tr_train_options *train,
                            const struct tr_train_event *event);
/* Its weights are those that are kept. */
void trainer_best_keep(struct trainer_best *best, const struct tr_train_event *event);

/* ---- in checkpoints ---- */

#define TRAINER_BEST_METRICS 7
#define TRAINER_BEST_NAME    64
/* Writes the figures, with some of their names written to `name`, and returns their number. Figures of a
   monitor other than the loss include its name, so that a run with another monitor ignores them. */
int64_t trainer_best_write(const struct trainer_best *best,
                           struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS],
                           char name[2][TRAINER_BEST_NAME]);
/* Reads the figures of a checkpoint; other metrics, and invalid values, are ignored. */
void trainer_best_read(struct trainer_best *best, const struct tr_checkpoint_metric *metric);

#endif
