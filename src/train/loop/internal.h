/* The inside of a trainer, shared by its creation (trainer.c), its loop (trainer_run.c), its evaluations
 * (trainer_evaluate.c) and its checkpoints (trainer_save.c, trainer_restore.c). */
#ifndef TR_TRAIN_TRAINER_INTERNAL_H
#define TR_TRAIN_TRAINER_INTERNAL_H

#include "train/observe/digests.h"
#include "train/evaluate/evaluate.h"
#include "train/loop/trainer.h"
#include "train/observe/observation.h"
#include "data/cache/store.h"
#include "job/step/mirror.h"
#include "train/observe/journal.h"
#include "train/observe/recording.h"

#include <stdatomic.h>

struct trainer_place;

/* What was told of the newest step of which anything was, where others go on without those who die: what they
   repeat is not told twice. Step -1: nothing was told. */
struct trainer_told {
    int64_t step;
    int64_t saved;       /* newest step whose checkpoint was told, or -1 */
    struct tr_text keys; /* a line for each event */
};
struct trainer_found; /* of trainer_evaluate.c */

/* The evaluation whose weights are kept. */
struct trainer_best {
    int64_t step; /* steps done then; -1: there is none yet */
    double loss, accuracy;
};

struct tr_trainer {
    tr_store *store; /* that data come through */
    struct tr_job *job;
    char *model_path;
    tr_device *device;     /* that computes */
    tr_device *holder;     /* that holds the parameters and updates them; often the same */
    tr_device *own_holder; /* where it is another; else NULL */
    tr_mirror *mirror;     /* of the device, for evaluations; made when first needed */
    tr_comm *comm;         /* NULL: a single process; borrowed */
    tr_comm *own_comm;     /* the one that the trainer made, else NULL */
    /* Where the others go on without those who die: what they are parts of, else NULL; and these parts, of
       which the last one is `comm`. */
    tr_comm *whole;
    tr_comm *crew[TR_COMM_PARTS];
    int crews;
    struct trainer_told told;
    bool is_root; /* this rank is the root of the run under way, and has what that takes */
    tr_strategy *strategy;
    struct tr_strategy_settings strategy_settings;
    char *shares_given; /* of the settings; speeds are of all ranks that the job began with. NULL: none */
    struct tr_memory_room room;       /* what was free before this trainer took any */
    struct tr_train_memory memory;    /* of this host */
    struct trainer_place *places;     /* [ranks] */
    tr_variables *variables;          /* the strategy's */
    tr_evaluator *evaluator[TR_SETS]; /* made when first needed */
    struct trainer_found *found;      /* by an evaluation under way in pieces; else NULL */
    bool shares;                      /* an evaluation of an asynchronous run: the others take pieces of it */
    struct tr_recording recording;    /* of where the time goes */
    struct tr_observation observation;
    struct tr_journal journal;                /* of a run under way, on the root */
    char *journal_directory;                  /* where it is kept; NULL: nowhere */
    bool journal_begun;                       /* an earlier run of this trainer wrote to it */
    char *command;                            /* how the run was started, or NULL */
    int64_t digests_every;                    /* steps; 0: digests are not recorded */
    tr_digests *digests;                      /* of a run under way */
    struct tr_strategy_statistics statistics; /* of the last run */
    struct tr_train_rank *rank_statistics;    /* the same for the public, NULL before */
    int64_t run_began, run_steps;             /* the step that the run began at, and its steps */
    double run_seconds; /* of its steps, without evaluation and saving, unless others go on meanwhile */
    int64_t step;       /* steps done */
    int64_t steps_per_epoch;
    double tokens_per_example; /* NaN where losses are not of tokens */
    /* Early stop; kept in checkpoints. */
    double best_loss;
    int64_t worse_evaluations;
    struct tr_metrics *metrics; /* of the latest evaluation, or NULL */
    double last_accuracy;       /* of the latest evaluation */
    struct trainer_best best;
    /* Checkpoints. */
    char *out;                           /* directory, or NULL */
    int lock;                            /* descriptor that holds the directory for this trainer, or -1 */
    bool displaced;                      /* the directory has been moved, and the run ends */
    char *settings_text, *strategy_text; /* for tr_trainer_info() */
    char *resumed;                       /* path, or NULL */
    int64_t resumed_step; /* its steps, where settings are those that it was made with; else -1 */
    char *resume_note;    /* skipped checkpoints, or NULL */
    char *start_note;     /* what parameters began with, or NULL */
    int64_t saved_step;   /* step of the newest checkpoint of this run, -1: none */
    double saved_at;      /* tr_clock_seconds() of it */
    char *checkpoint;     /* its path, on the root, or NULL */
    char data_digest[TR_SHA256_TEXT];
    /* Of the parameters after hash_step steps (-1: none), where no rank has all of them. */
    char hash[TR_SHA256_TEXT];
    int64_t hash_step;
    atomic_int stop; /* any thread and signal handlers set it */
};

static inline bool trainer_is_root(const tr_trainer *trainer)
{
    return tr_strategy_is_root(trainer->comm);
}

/* Brings the state of the run together in the root's variables, unless ranks keep parts of it; an
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

/* How far a rank has come, and what all have agreed on; trainer_shrink.c. */
struct trainer_progress {
    int64_t step;    /* steps done */
    int32_t resting; /* what comes after the last of them is not over */
    int32_t root;    /* of the job so far, by its number */
    int64_t saved;   /* newest step whose checkpoint was told; in the end, as the root knows it */
    int64_t tested;  /* steps done at the last evaluation on the test data; in the end, the root's */
    struct tr_step_figures figures; /* of it */
};
/* The ranks that take part in the job from the beginning, where these shall outlive each other. Collective.
 */
tr_status trainer_form_crew(tr_trainer *trainer, const struct tr_train_settings *settings, tr_comm *comm);
/* Whether the others go on without those who died, after a failure with `status`. */
bool trainer_may_shrink(const tr_trainer *trainer, tr_status status);
/* All who live go on without those who died: agrees on the step, puts the state back to its beginning, and
   divides the work anew. *progress is this rank's, and becomes what all agreed on. `text`, of `size` bytes,
   says who was lost. Collective among those who live. TR_EPEER where they cannot. */
tr_status trainer_shrink(tr_trainer *trainer, struct trainer_progress *progress, char *text, size_t size);
/* Parts with the crews, after everything that uses them. */
void trainer_dissolve(tr_trainer *trainer);
/* Where the rank became the root since another one died: takes the directory, and goes on with journal and
   events. Local. TR_EIO. */
tr_status trainer_take_over(tr_trainer *trainer);
/* Whether an event was not told yet; notes it as told. On the root. */
bool trainer_is_news(tr_trainer *trainer, const struct tr_train_event *event);
/* What the root before told, as its journal has it. What cannot be read was not told. */
void trainer_learn_told(tr_trainer *trainer);
/* Before a failure ends this rank: tells the others, also those of other crews. */
void trainer_tell_others(tr_trainer *trainer);

/* Takes the output directory for this process, and makes it if need be. TR_EIO. */
tr_status trainer_take_directory(tr_trainer *trainer);

/* Writes a checkpoint, and marks it where it is of the best evaluation; *path (may be NULL) is returned, free
   with tr_free(). With `gathered` the state is the one that trainer_gather() brought last, of an asynchronous
   run, which may have gone on. Where the directory has been moved meanwhile it is written there, `displaced`
   is set, and TR_EIO says where. */
tr_status trainer_save(tr_trainer *trainer, bool gathered, char **path);

/* Whether an evaluation that is due on the way is better than all before, where the run keeps the best. */
bool trainer_is_best(const tr_trainer *trainer, const struct tr_train_event *event);
/* After a checkpoint was loaded: the best evaluation that it knows of is that of this run if its weights are
   in the output directory. What is not there is not claimed; the note of the trainer says so. Collective. */
tr_status trainer_settle_best(tr_trainer *trainer);
/* Lets this rank take part in evaluations of asynchronous runs, once there is a strategy. */
void trainer_set_evaluation_hooks(tr_trainer *trainer);
/* The data that evaluations on the way use; TR_SETS for none. */
enum tr_data_set trainer_judging_set(const tr_trainer *trainer);

/* Loads parameters, optimizer and counters from the checkpoint; refuses other settings or data unless
 * `changed`. */
tr_status trainer_restore(tr_trainer *trainer, tr_checkpoint *checkpoint, bool changed);
/* Whether this run had nothing to do: the newest checkpoint of its directory is the one that it went on from,
   and no step was added. By the root's word; all ranks. */
tr_status trainer_was_complete(tr_trainer *trainer, bool *complete);
/* Notes what the ranks did since the run began, for tr_trainer_statistics(); as collective as steps are. */
tr_status trainer_collect_statistics(tr_trainer *trainer);
/* A run begins, tells of an event, and has ended with `status`, whose message stays: what the root's journal
   says of it. Local. */
void trainer_journal_start(tr_trainer *trainer);
/* Another rank has begun it. */
void trainer_journal_go_on(tr_trainer *trainer);
void trainer_journal_event(tr_trainer *trainer, const struct tr_train_event *event);
void trainer_journal_end(tr_trainer *trainer, tr_status status);
/* Before anything large is made: what the processes of the host will take at least. TR_ENOMEM where it has
   less and the settings do not say that it does not matter. Collective. */
tr_status trainer_expect_memory(tr_trainer *trainer, const struct tr_train_settings *settings);
/* Before the first step, which touches all of it: what they take. Likewise. */
tr_status trainer_count_memory(tr_trainer *trainer, const struct tr_train_settings *settings);
/* Whether a file of data has changed since it was opened; `text` of `size` bytes names it. Ranks of one host
   see the same files: the first looks, the others get false. Local. */
bool trainer_data_changed(const tr_trainer *trainer, char *text, size_t size);
/* Computes data_digest, which reads all training data, once. */
tr_status trainer_digest_data(tr_trainer *trainer);

/* tr_trainer_evaluate() once it is clear which data; of an asynchronous run called by the root alone, after
   trainer_gather_parameters(). */
tr_status trainer_evaluate(tr_trainer *trainer, enum tr_data_set set, struct tr_train_event *event);
/* The parameters to evaluate with: moving averages where they are kept. */
tr_status trainer_evaluated(tr_trainer *trainer, const float **parameters);

#endif
