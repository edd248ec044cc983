/* A trainer, as the rest of the library and tests see it beside its public interface: what it is made of, and
 * what imports do with it. Its members are known to src/train alone (loop/internal.h). */
#ifndef TR_TRAIN_TRAINER_H
#define TR_TRAIN_TRAINER_H

#include "job/job.h"
#include "strategy/strategy.h"
#include "train/setup/memory.h"
#include "trireme/train.h"

/* tr_trainer_create() as one rank of `comm`, which is borrowed until the trainer is destroyed; NULL: a
 * process alone. Collective, as is everything that is done with the trainer then: stepping, running, saving,
 * evaluating. Only the root (rank 0) writes checkpoints and tells the listener. Returned, destroy with
 * tr_trainer_destroy(). */
tr_status trainer_create(const struct tr_train_settings *settings, tr_comm *comm, tr_trainer **out);

/* A process alone that computes with a device which is there already: the trainer's from then on, also after
   a failure. */
tr_status trainer_create_on(const struct tr_train_settings *settings, tr_device *device, tr_trainer **out);
/* The next step is the one after `step` steps, whatever the state: for a caller that asks what such a step
   is made of, not its numbers. Local. */
void trainer_go_to(tr_trainer *trainer, int64_t step);

/* ---- what it is made of: local, and borrowed until the trainer is destroyed ---- */

struct tr_job *trainer_job(const tr_trainer *trainer);
/* The device that computes. */
tr_device *trainer_device(const tr_trainer *trainer);
/* Until ranks are lost: then the trainer makes another one. The variables are the strategy's, and go with it.
 */
tr_strategy *trainer_strategy(const tr_trainer *trainer);
tr_variables *trainer_variables(const tr_trainer *trainer);
int64_t trainer_steps_done(const tr_trainer *trainer);
/* What the processes of this host take of its memory. */
const struct tr_train_memory *trainer_memory(const tr_trainer *trainer);
/* Whether this rank keeps a pass for evaluations of `set`: made by the first one that it takes part in. */
bool trainer_has_evaluator(const tr_trainer *trainer, enum tr_data_set set);

/* ---- a trainer that only writes a checkpoint: of one process, without steps ---- */

/* Gives all parameters other values: `arena` has those of the whole network, [arena_floats]. Moving averages
   begin as copies of them. TR_ENOMEM. */
tr_status trainer_load_parameters(tr_trainer *trainer, const float *arena);
/* Gives a trainer without an output directory one, which is made if need be, and taken for this process until
   the trainer is destroyed. TR_EIO where it cannot be made or another process has it, TR_ENOMEM. */
tr_status trainer_set_directory(tr_trainer *trainer, const char *directory);

#endif
