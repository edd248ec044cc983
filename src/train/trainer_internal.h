/* The inside of a trainer, shared by its creation (trainer.c), its loop (trainer_run.c), its evaluations
 * (trainer_evaluate.c) and its checkpoints (trainer_save.c, trainer_restore.c), and with what gives it other
 * parameters to begin with (export/import.c). */
#ifndef TR_TRAIN_TRAINER_INTERNAL_H
#define TR_TRAIN_TRAINER_INTERNAL_H

#include "train/digests.h"
#include "train/evaluate.h"
#include "train/observation.h"
#include "job/job.h"
#include "job/reach.h"
#include "strategy/strategy.h"
#include "train/recording.h"
#include "trireme/train.h"

#include <signal.h>

struct trainer_place;

struct tr_trainer {
    struct tr_job *job;
    char *model_path;
    tr_device *device;     /* that computes */
    tr_device *holder;     /* that holds the parameters and updates them; often the same */
    tr_device *own_holder; /* where it is another; else NULL */
    tr_reach *reach;       /* of the device, for evaluations; made when first needed */
    tr_comm *comm;         /* NULL: a single process; borrowed */
    tr_comm *own_comm;     /* the same where the trainer made it, else NULL */
    tr_strategy *strategy;
    struct trainer_place *places;     /* [ranks] */
    tr_variables *variables;          /* the strategy's */
    tr_evaluator *evaluator[TR_SETS]; /* made when first needed */
    struct tr_recording recording;    /* of where the time goes */
    struct tr_observation observation;
    int64_t digests_every;                    /* steps; 0: digests are not recorded */
    tr_digests *digests;                      /* of a run under way */
    struct tr_strategy_statistics statistics; /* of the last run */
    struct tr_train_rank *rank_statistics;    /* the same for the public, NULL before */
    int64_t run_began, run_steps;             /* the step that the run began at, and its steps */
    int64_t step;                             /* steps done */
    int64_t steps_per_epoch;
    /* Early stop; kept in checkpoints. */
    double best_loss;
    int64_t worse_evaluations;
    double last_accuracy; /* of the latest evaluation */
    /* Checkpoints. */
    char *out;          /* directory, or NULL */
    int lock;           /* descriptor that holds the directory for this trainer, or -1 */
    char *resumed;      /* path, or NULL */
    char *resume_note;  /* skipped checkpoints, or NULL */
    int64_t saved_step; /* step of the newest checkpoint of this run, -1: none */
    double saved_at;    /* tr_clock_seconds() of it */
    char data_digest[TR_SHA256_TEXT];
    /* Of the parameters after hash_step steps (-1: none), where no rank has all of them. */
    char hash[TR_SHA256_TEXT];
    int64_t hash_step;
    volatile sig_atomic_t stop;
};

/* tr_trainer_create() as one rank of `comm`, which is borrowed until the trainer is destroyed. Collective, as
   is everything that is done with the trainer then: stepping, running, saving, evaluating. Only the chief
   (rank 0) writes checkpoints and tells the listener. */
tr_status trainer_create(const struct tr_train_settings *settings, tr_comm *comm, tr_trainer **out);

static inline bool trainer_is_chief(const tr_trainer *trainer)
{
    return tr_strategy_is_chief(trainer->comm);
}

/* Brings the state of the run together in the chief's variables, unless ranks keep parts of it; an
 * asynchronous run may have gone on some steps since the last one, which are counted. Collective, but for
 * asynchronous strategies. */
tr_status trainer_gather(tr_trainer *trainer);
/* The same for parameters and their averages, also where ranks keep parts; then trainer_release(). */
tr_status trainer_gather_parameters(tr_trainer *trainer);
/* At the end of a run: the same once nothing is under way any more; what is saved, evaluated and hashed from
 * then on is one state. */
tr_status trainer_settle(tr_trainer *trainer);
/* Gives the memory back that gathering took where ranks keep parts of the state; after the use. Local. */
void trainer_release(tr_trainer *trainer);
/* Notes the present hash for tr_trainer_hash(), where ranks keep parts of the parameters. Collective, in a
   settled state. */
tr_status trainer_note_hash(tr_trainer *trainer);

/* Writes a checkpoint; *path (may be NULL) is returned, free with tr_free(). */
tr_status trainer_save(tr_trainer *trainer, char **path);

/* Loads parameters, optimizer and counters from the checkpoint; refuses other settings or data unless
 * `changed`. */
tr_status trainer_restore(tr_trainer *trainer, tr_checkpoint *checkpoint, bool changed);
/* Notes what the ranks did since the run began, for tr_trainer_statistics(); as collective as steps are. */
tr_status trainer_collect_statistics(tr_trainer *trainer);
/* Computes data_digest, which reads all training data, once. */
tr_status trainer_digest_data(tr_trainer *trainer);

/* tr_trainer_evaluate() once it is clear which data; of an asynchronous run the chief alone, after
   trainer_gather_parameters(). */
tr_status trainer_evaluate(tr_trainer *trainer, enum tr_data_set set, struct tr_train_event *event);
/* The parameters to evaluate with: moving averages where they are kept. */
tr_status trainer_evaluated(tr_trainer *trainer, const float **parameters);

#endif
