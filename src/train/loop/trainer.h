/* A trainer's interface for the rest of the library and tests, besides the public one. Only src/train
 * knows its members (loop/internal.h).
 */
#ifndef TR_TRAIN_TRAINER_H
#define TR_TRAIN_TRAINER_H

#include "job/job.h"
#include "strategy/strategy.h"
#include "train/setup/memory.h"
#include "trireme/train.h"

/* tr_trainer_create() as one rank of `comm`, which is borrowed until the trainer is destroyed; NULL: a
 * single process. Collective, as are then all functions of the trainer: stepping, running, saving,
 * evaluating. Only the root (rank 0) writes checkpoints and calls the listener. Returned, destroy with
 * tr_trainer_destroy().
 */
tr_status trainer_create(const struct tr_train_settings *settings, tr_comm *comm, tr_trainer **out);

/* A single process that computes with an existing device, which the trainer takes, also after a failure. */
tr_status trainer_create_on(const struct tr_train_settings *settings, tr_device *device, tr_trainer **out);
/* Makes the next step the one after `step` steps, whatever the state: for a caller that needs the
   structure of such a step, not its numbers. Local. */
void trainer_go_to(tr_trainer *trainer, int64_t step);

/* ---- what it is made of: local, and borrowed until the trainer is destroyed ---- */

struct tr_job *trainer_job(const tr_trainer *trainer);
/* The device that computes. */
tr_device *trainer_device(const tr_trainer *trainer);
/* Valid until ranks are lost: then the trainer makes another one. The strategy owns the variables. */
tr_strategy *trainer_strategy(const tr_trainer *trainer);
tr_variables *trainer_variables(const tr_trainer *trainer);
int64_t trainer_steps_done(const tr_trainer *trainer);
/* The memory of this host that its processes take. */
const struct tr_train_memory *trainer_memory(const tr_trainer *trainer);
/* Whether this rank keeps a pass for evaluations of `set`, made by the first one in which it takes part. */
bool trainer_has_evaluator(const tr_trainer *trainer, enum tr_data_set set);

/* ---- a trainer that only writes a checkpoint: of one process, without steps ---- */

/* Sets all parameters: `arena` has those of the whole network, [arena_floats]. Moving averages become
   copies of them. TR_ENOMEM. */
tr_status trainer_load_parameters(tr_trainer *trainer, const float *arena);
/* Gives an output directory to a trainer without one; it is made if needed, and locked for this process
   until the trainer is destroyed. TR_EIO where it cannot be made or another process has it, TR_ENOMEM. */
tr_status trainer_set_directory(tr_trainer *trainer, const char *directory);

#endif
