/* A table of the processes of a job: what each computes, holds and updates. */
#ifndef CLI_PLACEMENT_H
#define CLI_PLACEMENT_H

#include "trireme/train.h"

/* Prints it to stdout, or to stderr if stdout has one object per line. */
tr_status cli_placement_print(const tr_trainer *trainer, bool to_stderr);

#endif
