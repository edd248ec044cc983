/* The summary of a run, for people. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "cli/terminal/screen.h"
#include "cli/train/facts.h"

/* `status` is that of the command, `now` the trainer's facts; `hash` is "" without one. */
void cli_summary(struct cli_screen *screen, const struct cli_facts *facts, const tr_trainer *trainer,
                 tr_status status, const struct tr_train_info *now, const char *hash);

#endif
