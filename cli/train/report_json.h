/* The lines of `--log json`, which are those of the journal (train/observe/journal.h) with an exit code at
 * the end: one object each, distinguished by "event". docs/reference/command.md lists the members.
 */
#ifndef CLI_REPORT_JSON_H
#define CLI_REPORT_JSON_H

#include "cli/train/facts.h"

/* `command` is the command line of the run. */
void cli_json_start(const struct cli_facts *facts, const char *command);
void cli_json_event(const struct cli_facts *facts, const struct tr_train_event *event);
/* `status` and its message are those of the command, `now` the trainer's facts; `hash` is "" without one. */
void cli_json_end(const struct cli_facts *facts, const tr_trainer *trainer, tr_status status,
                  const struct tr_train_info *now, const char *hash);

#endif
