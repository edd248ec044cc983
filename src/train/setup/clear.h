/* Beginning anew in the directory of an earlier run. */
#ifndef TR_TRAIN_CLEAR_H
#define TR_TRAIN_CLEAR_H

#include "trireme/status.h"

/* Removes the checkpoints of `directory` and what was written there for TensorBoard, and nothing else. A
   directory that is not there is clear. The caller holds the directory's lock. TR_EIO, TR_ENOMEM. */
tr_status tr_run_clear(const char *directory);

#endif
