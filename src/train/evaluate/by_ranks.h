/* Evaluations of a trainer: all ranks that compute evaluate a part. */
#ifndef TR_TRAIN_BY_RANKS_H
#define TR_TRAIN_BY_RANKS_H

#include "job/step/mirror.h"
#include "train/evaluate/evaluate.h"
#include "trireme/train.h"

struct trainer_found;

/* Zeroed to begin with. */
struct trainer_evaluation {
    tr_mirror *mirror;                /* of the device that computes; made when first needed */
    tr_evaluator *evaluator[TR_SETS]; /* likewise */
    struct trainer_found *found;      /* by an evaluation under way in pieces; else NULL */
    bool shares;                      /* other ranks of an asynchronous run evaluate pieces of it */
    struct tr_metrics *metrics;       /* of the latest evaluation, or NULL */
};

/* Releases the parts that depend on the present ranks and variables; the latest metrics stay. */
void trainer_evaluation_drop(struct trainer_evaluation *evaluation);
/* The same, and the metrics; before the strategy. */
void trainer_evaluation_release(struct trainer_evaluation *evaluation);

/* Makes this rank take part in evaluations of asynchronous runs, once there is a strategy. */
void trainer_set_evaluation_hooks(tr_trainer *trainer);
/* The data of evaluations during the run; TR_SETS for none. */
enum tr_data_set trainer_judging_set(const struct tr_job *job);
/* tr_trainer_evaluate() for the data chosen; in an asynchronous run called only by the root, after
   trainer_variables_gather_parameters(). */
tr_status trainer_evaluate(tr_trainer *trainer, enum tr_data_set set, struct tr_train_event *event);
/* The parameters to evaluate with: moving averages where they are kept. */
tr_status trainer_evaluated(tr_trainer *trainer, const float **parameters);

#endif
