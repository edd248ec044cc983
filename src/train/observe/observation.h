/* Observing a run: the parts of a trainer that only record, and when.
 *
 * All ranks choose the same steps to observe; the root writes. A failure to write ends the writing, not
 * the run.
 */
#ifndef TR_TRAIN_OBSERVATION_H
#define TR_TRAIN_OBSERVATION_H

#include "train/observe/digests.h"
#include "train/observe/journal.h"
#include "train/observe/recording.h"
#include "train/observe/tensorboard.h"
#include "train/observe/updates.h"

/* For TensorBoard. */
struct trainer_board {
    char *directory;       /* of event files; NULL: nothing is observed */
    int64_t histograms;    /* steps from one to the next; 0: none */
    tr_probe *probe;       /* of every rank that steps together with others, and of the root */
    tr_tensorboard *board; /* the root's, from the start of a run to its end; NULL after a failure */
    int64_t stride;        /* steps that the last call of the strategy made */
    bool looked;           /* the last step was observed */
    bool due;              /* its histograms are written */
    char *problem;         /* why writing stopped, until it is reported; else NULL */
};

struct trainer_journal {
    struct tr_journal file; /* of a run under way, on the root */
    char *directory;        /* where it is kept; NULL: nowhere */
    bool begun;             /* an earlier run of this trainer wrote to it */
    char *command;          /* how the run was started, or NULL */
};

struct trainer_observation {
    struct tr_recording recording; /* of where the time goes */
    struct trainer_board board;
    struct trainer_journal journal;
    struct trainer_updates updates;
    int64_t digests_every; /* steps; 0: digests are not recorded */
    tr_digests *digests;   /* of a run under way */
};

/* Nothing is observed yet. Then trainer_observation_release(). */
void trainer_observation_begin(struct trainer_observation *observation);
/* Releases observers of the strategy; call it before the strategy is destroyed. */
void trainer_observation_close(struct trainer_observation *observation);
/* Releases the rest; after the strategy, whose threads record, and before the model, whose names are used. */
void trainer_observation_release(struct trainer_observation *observation);
/* Whether every step is observed. */
bool trainer_observation_is_on(const struct trainer_observation *observation);
/* The next problem with a file that is not reported yet, or NULL. Returned, free with tr_free(). */
char *trainer_observation_problem(struct trainer_observation *observation);

/* ---- TensorBoard ---- */

/* Notes the settings. TR_EINVAL. */
tr_status trainer_observe(tr_trainer *trainer, const struct tr_train_settings *settings);
/* All ranks have begun; their settings must agree. Collective. */
tr_status trainer_observe_connect(tr_trainer *trainer);

/* A run starts. TR_EIO where files cannot be written. */
tr_status trainer_observe_start(tr_trainer *trainer);
/* In a run under way, this rank became the root, whose events go on in a separate file. Local. */
void trainer_observe_take_over(tr_trainer *trainer);
/* The next step is about to be made. */
void trainer_observe_next(tr_trainer *trainer);
/* It was made. Collective, where the ranks step together. */
tr_status trainer_observe_step(tr_trainer *trainer, const struct tr_step_figures *figures);
/* Events for the listener. */
void trainer_observe_event(tr_trainer *trainer, const struct tr_train_event *event);
/* The run has done all its steps. Collective likewise. */
tr_status trainer_observe_finish(tr_trainer *trainer);
/* The run ended with `status`. */
void trainer_observe_end(tr_trainer *trainer, tr_status status);

/* ---- the root's journal ---- */

/* Record the beginning of a run, an event, and the end with `status`, whose message stays. Local. */
void trainer_journal_start(tr_trainer *trainer);
/* Another rank has begun it. */
void trainer_journal_go_on(struct trainer_journal *journal);
void trainer_journal_event(tr_trainer *trainer, const struct tr_train_event *event);
void trainer_journal_end(tr_trainer *trainer, tr_status status);

/* ---- digests ---- */

/* A run starts. Collective. */
tr_status trainer_digests_start(tr_trainer *trainer);

#endif
