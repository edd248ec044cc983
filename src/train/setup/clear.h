/* Starting afresh in the directory of an earlier run. */
#ifndef TR_TRAIN_CLEAR_H
#define TR_TRAIN_CLEAR_H

#include "trireme/status.h"

/* Removes the checkpoints and TensorBoard's files of `directory`, and nothing else. A missing directory is
   no failure. The caller holds the directory's lock. TR_EIO, TR_ENOMEM. */
tr_status tr_run_clear(const char *directory);

#endif
