/* A table of which process of a job computes, holds and updates what. */
#ifndef CLI_PLACEMENT_H
#define CLI_PLACEMENT_H

#include "trireme/train.h"

/* Prints it to stdout, or to stderr where stdout has an object a line. */
tr_status cli_placement_print(const tr_trainer *trainer, bool to_stderr);

#endif
