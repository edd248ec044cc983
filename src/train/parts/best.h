/* What a run knows of its evaluations: whether it gets better, and which one is the best so far, whose
 * weights are kept. Kept in checkpoints, so that a run that is taken up decides as it would have. */
#ifndef TR_TRAIN_BEST_H
#define TR_TRAIN_BEST_H

#include "checkpoint/checkpoint.h"
#include "job/file/options.h"
#include "trireme/train.h"

struct trainer_best {
    double lowest_loss;
    int64_t worse_evaluations; /* since the one with the lowest loss */
    double last_accuracy;      /* of the latest evaluation */
    struct {
        int64_t step; /* steps done then; -1: there is none yet */
        double loss, accuracy;
    } kept; /* the evaluation whose weights are kept */
};

/* There was no evaluation yet. */
void trainer_best_begin(struct trainer_best *best);
/* No weights are kept any more. */
void trainer_best_forget(struct trainer_best *best);

/* An evaluation that may end the run. */
void trainer_best_evaluated(struct trainer_best *best, const struct tr_train_event *event);
/* Whether the run ends before its last step, by what it has heard so far. */
bool trainer_best_ends_early(const struct trainer_best *best, const struct tr_train_options *train);

/* Whether an evaluation is better than the one whose weights are kept, in a run that keeps the best: by what
   the run waits for, an accuracy, else a loss. Of equal accuracies the lower loss is better, of equal losses
   the earlier one. */
bool trainer_best_is_better(const struct trainer_best *best, const struct tr_train_options *train,
                            const struct tr_train_event *event);
/* Its weights are those that are kept. */
void trainer_best_keep(struct trainer_best *best, const struct tr_train_event *event);

/* ---- in checkpoints ---- */

#define TRAINER_BEST_METRICS 6
void trainer_best_write(const struct trainer_best *best,
                        struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS]);
/* Takes what a checkpoint says; other metrics, and values that cannot be, are passed over. */
void trainer_best_read(struct trainer_best *best, const struct tr_checkpoint_metric *metric);

#endif
