/* The structure of a trainer: its parts, each with a header that documents its functions. Parts know each
 * other only through arguments of their functions; functions that combine several take the trainer: its
 * creation (create.c), its loop (run.c, rest.c), going on without ranks that died (shrink.c), its
 * checkpoints (save.c, restore.c), its evaluations (evaluate/by_ranks.h), its observation
 * (observe/observation.h) and its receipt (receipt/keeper.h).
 */
#ifndef TR_TRAIN_TRAINER_INTERNAL_H
#define TR_TRAIN_TRAINER_INTERNAL_H

#include "data/cache/store.h"
#include "train/describe/account.h"
#include "train/evaluate/by_ranks.h"
#include "train/parts/best.h"
#include "train/parts/crew.h"
#include "train/parts/directory.h"
#include "train/parts/reported.h"
#include "train/loop/trainer.h"
#include "train/parts/variables.h"
#include "train/observe/observation.h"
#include "train/receipt/keeper.h"
#include "train/setup/beginning.h"
#include "train/setup/host.h"
#include "train/setup/stop.h"

#include <stdatomic.h>

/* The learning rate that a program sets instead of the schedule's; rate.c. */
struct trainer_rate {
    bool running; /* tr_trainer_run() is under way */
    bool wanted;  /* a listener has set one, which all ranks use after the next step */
    double value; /* the last one that was set; NaN: the schedule's */
};

struct tr_trainer {
    tr_store *store; /* that data come through */
    struct tr_job *job;
    char *model_path;
    char *settings_text, *strategy_text; /* for tr_trainer_info() */
    int64_t steps_per_epoch;
    double tokens_per_example; /* NaN where losses are not of tokens */
    char data_digest[TR_SHA256_TEXT];
    struct trainer_rate rate;
    pid_t process; /* process that made it */
    tr_stop own;   /* used where the settings give none */
    tr_stop *stop; /* theirs, borrowed, or `own`: any thread and signal handlers set it */
    struct trainer_crew crew;
    struct trainer_reported reported;
    struct trainer_host host;
    struct trainer_beginning beginning;
    struct trainer_variables variables;
    struct trainer_evaluation evaluation;
    struct trainer_best best;
    struct trainer_directory directory;
    struct trainer_observation observation;
    struct trainer_receipt receipt;
    struct trainer_account account; /* of the last run */
};

/* TR_EUNSUPPORTED in a process that was forked from the one that made the trainer. */
static inline tr_status trainer_check_process(const tr_trainer *trainer)
{
    return tr_process_check(trainer->process, "trainer");
}

static inline bool trainer_is_root(const tr_trainer *trainer)
{
    return trainer_crew_is_root(&trainer->crew);
}

/* Makes everything that can fail, after the trainer's own memory: the parts for `settings` by the ranks of
   its crew, before the first step. Collective. */
tr_status trainer_set_up(tr_trainer *trainer, const struct tr_train_settings *settings);
/* Finds ranks that would compute different things, before they divide the work: TR_EMISMATCH. Collective. */
tr_status trainer_agree_on_job(tr_trainer *trainer, const struct tr_train_settings *settings);
/* Likewise ranks that would begin with different state. Collective. */
tr_status trainer_agree_on_state(tr_trainer *trainer);
/* Computes data_digest, which reads all training data, once. */
tr_status trainer_digest_data(tr_trainer *trainer);

/* The position of a rank in the run, and the one that all have agreed on. */
struct trainer_progress {
    int64_t step;    /* steps done */
    int32_t resting; /* the work after the last step is not finished */
    int32_t root;    /* number of the current version of the job */
    int64_t saved;   /* newest step whose checkpoint was reported; at the end, as the root knows it */
    int64_t tested;  /* steps done at the last evaluation on the test data; at the end, the root's */
    struct tr_step_figures figures; /* of it */
};
/* All living ranks continue without dead ones: they agree on the step, restore the state to its beginning,
   and divide the work anew. *progress is this rank's, and becomes the agreed one. `text`, of `size` bytes,
   names the lost ranks. Collective among the living ranks. TR_EPEER where they cannot. */
tr_status trainer_shrink(tr_trainer *trainer, struct trainer_progress *progress, char *text, size_t size);
/* Called when the rank became the root since another one died: locks the directory, and continues journal
   and events. Local. TR_EIO. */
tr_status trainer_take_over(tr_trainer *trainer);

/* Writes a checkpoint, and marks it if it is of the best evaluation; *path (may be NULL) is returned, free
   with tr_free(). With `gathered` the state is that of the last trainer_variables_gather(), of an
   asynchronous run, which may have continued. TR_EIO and `displaced` as in trainer_directory_save().
   Collective. */
tr_status trainer_save(tr_trainer *trainer, bool gathered, char **path);

/* Destination of a checkpoint outside of the run's history: a directory of this path, or, with `path`
   NULL, a sink. */
struct trainer_target {
    const char *path;
    struct tr_stored_sink sink;
};
/* Writes one there, on the root. As collective as steps are. */
tr_status trainer_save_elsewhere(tr_trainer *trainer, const struct trainer_target *to);

/* The rate that the root's program has set applies to all ranks from the next step on. Collective. */
tr_status trainer_take_rate(tr_trainer *trainer);

/* Loads parameters, optimizer and counters from the checkpoint; refuses other settings or data unless
 * `changed`. */
tr_status trainer_restore(tr_trainer *trainer, tr_checkpoint *checkpoint, bool changed);
/* After loading a checkpoint: takes its best evaluation as this run's if the weights are in the output
   directory; otherwise the trainer's note says that they are missing. Collective. */
tr_status trainer_settle_best(tr_trainer *trainer);
/* Whether this run had nothing to do: the newest checkpoint of its directory is the one it continued from,
   and no step was added. Decided by the root; on all ranks. */
tr_status trainer_was_complete(tr_trainer *trainer, bool *complete);

#endif
