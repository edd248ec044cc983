/* A trainer's learned state: the parameters and moments after so many steps, the devices that hold them
 * and compute with them, and the strategy of its steps.
 */
#ifndef TR_TRAIN_VARIABLES_H
#define TR_TRAIN_VARIABLES_H

#include "base/numbers/hash.h"
#include "strategy/strategy.h"

struct trainer_variables {
    tr_device *device;     /* that computes */
    tr_device *holder;     /* that holds the parameters and updates them; often the same */
    tr_device *own_holder; /* where it is another; else NULL */
    tr_strategy *strategy;
    struct tr_strategy_settings settings; /* settings that it was made with, without `shares` */
    char *shares_given;   /* of the settings; speeds of all ranks that the job began with. NULL: none */
    tr_variables *arenas; /* the strategy's */
    int64_t step;         /* steps done */
    /* Of the parameters after hash_step steps (-1: none), where no rank has all of them. */
    char hash[TR_SHA256_TEXT];
    int64_t hash_step;
};

/* Nothing is there. */
void trainer_variables_begin(struct trainer_variables *variables);
/* Releases all; after all observers of the strategy and users of the devices. */
void trainer_variables_release(struct trainer_variables *variables);

/* Replaces the strategy by another one, which has the state after `step` steps. */
void trainer_variables_replace(struct trainer_variables *variables, tr_strategy *strategy, int64_t step);

/* Gathers the state of the run in the root's variables, unless ranks keep parts of it; counts steps of an
 * asynchronous run since the last one. Collective, except for asynchronous strategies.
 */
tr_status trainer_variables_gather(struct trainer_variables *variables);
/* The same for parameters and their averages, also where ranks keep parts; then call
   trainer_variables_drop(). */
tr_status trainer_variables_gather_parameters(struct trainer_variables *variables);
/* At the end of a run: the same, once no work is under way; later checkpoints, evaluations and hashes are
 * of the same state.
 */
tr_status trainer_variables_settle(struct trainer_variables *variables);
/* Releases memory that gathering took where ranks keep parts of the state; after its use. Local. */
void trainer_variables_drop(struct trainer_variables *variables);

/* Notes the present hash, where ranks keep parts of the parameters. Collective, between steps. */
tr_status trainer_variables_note_hash(struct trainer_variables *variables);
/* The hash of the parameters; where ranks keep parts of them, the noted one, and TR_EINVAL after later
   steps. Local. */
tr_status trainer_variables_hash(const struct trainer_variables *variables, char hex[TR_SHA256_TEXT]);

#endif
