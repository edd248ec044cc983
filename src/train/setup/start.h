/* Parameters that replace initial values: those of a checkpoint of another run, and
 * vectors of words from a file. */
#ifndef TR_TRAIN_START_H
#define TR_TRAIN_START_H

#include "trireme/train.h"

/* Gives parameters that have their initial values other ones: first those of every layer with `vectors:`,
 * then, of the checkpoint settings->from or settings->from_state, those whose name, type and shape match
 * the network's, each as its moving average where the checkpoint has one. The trainer's start_summary
 * describes the result. TR_EMISMATCH where nothing matches, for vectors of another width, and where ranks
 * have different files; TR_ENONFINITE; errors of reading. Collective.
 */
tr_status trainer_start(tr_trainer *trainer, const struct tr_train_settings *settings);

#endif
