/* What a trainer learns: the parameters and moments after so many steps, the devices that hold them and
 * compute with them, and the strategy that makes steps of them. */
#ifndef TR_TRAIN_VARIABLES_H
#define TR_TRAIN_VARIABLES_H

#include "base/numbers/hash.h"
#include "strategy/strategy.h"

struct trainer_variables {
    tr_device *device;     /* that computes */
    tr_device *holder;     /* that holds the parameters and updates them; often the same */
    tr_device *own_holder; /* where it is another; else NULL */
    tr_strategy *strategy;
    struct tr_strategy_settings settings; /* it was made with, but for `shares` */
    char *shares_given;   /* of the settings; speeds are of all ranks that the job began with. NULL: none */
    tr_variables *arenas; /* the strategy's */
    int64_t step;         /* steps done */
    /* Of the parameters after hash_step steps (-1: none), where no rank has all of them. */
    char hash[TR_SHA256_TEXT];
    int64_t hash_step;
};

/* Nothing is there. */
void trainer_variables_begin(struct trainer_variables *variables);
/* Gives all back; after everything that looks at the strategy or computes on the devices. */
void trainer_variables_release(struct trainer_variables *variables);

/* Another strategy, which has taken over the state after `step` steps, in place of the one before. */
void trainer_variables_replace(struct trainer_variables *variables, tr_strategy *strategy, int64_t step);

/* Brings the state of the run together in the root's variables, unless ranks keep parts of it; an
 * asynchronous run may have gone on some steps since the last one, which are counted. Collective, but for
 * asynchronous strategies. */
tr_status trainer_variables_gather(struct trainer_variables *variables);
/* The same for parameters and their averages, also where ranks keep parts; then trainer_variables_drop(). */
tr_status trainer_variables_gather_parameters(struct trainer_variables *variables);
/* At the end of a run: the same once nothing is under way any more; what is saved, evaluated and hashed from
 * then on is one state. */
tr_status trainer_variables_settle(struct trainer_variables *variables);
/* Gives the memory back that gathering took where ranks keep parts of the state; after the use. Local. */
void trainer_variables_drop(struct trainer_variables *variables);

/* Notes the present hash, where ranks keep parts of the parameters. Collective, in a settled state. */
tr_status trainer_variables_note_hash(struct trainer_variables *variables);
/* The hash of the parameters; of those that ranks keep parts of the one that was noted, and TR_EINVAL where
   steps came since. Local. */
tr_status trainer_variables_hash(const struct trainer_variables *variables, char hex[TR_SHA256_TEXT]);

#endif
