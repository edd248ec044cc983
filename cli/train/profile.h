/* The profile of a run, for people and programs. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "base/text/text.h"

#include "trireme/train.h"

/* Appends two tables: by layer, and by cause for each process. */
void cli_profile_text(const struct tr_train_profile *profile, struct tr_text *text);
/* Prints the same as one line with an object. */
void cli_profile_json(const struct tr_train_profile *profile);

#endif
