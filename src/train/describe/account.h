/* The work of a trainer's ranks in its last run. */
#ifndef TR_TRAIN_ACCOUNT_H
#define TR_TRAIN_ACCOUNT_H

#include "strategy/strategy.h"
#include "trireme/train.h"

/* Zeroed to begin with. */
struct trainer_account {
    struct tr_strategy_statistics statistics;
    struct tr_train_rank *ranks; /* the same for the public, NULL before */
    int64_t began, steps;        /* the step that the run began at, and its steps */
    double seconds; /* of its steps, without evaluation and saving, unless other ranks continue meanwhile */
};

/* A run begins after `step` steps. */
void trainer_account_begin(struct trainer_account *account, int64_t step);
/* Notes the ranks' work since the last call, up to `step`. As collective as steps are. */
tr_status trainer_account_collect(struct trainer_account *account, tr_strategy *strategy, int64_t step);
void trainer_account_release(struct trainer_account *account);

#endif
