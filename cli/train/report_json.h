/* The lines of `--log json`, which are those of the journal (train/observe/journal.h) with an exit code at the end:
 * one object each, told apart by "event". docs/command.md lists the members. Nothing is printed without that
 * option. */
#ifndef CLI_REPORT_JSON_H
#define CLI_REPORT_JSON_H

#include "cli/train/report.h"

/* `command` is how the run was started. */
void cli_json_start(struct cli_report *report, const char *command);
void cli_json_event(struct cli_report *report, const struct tr_train_event *event);
/* `status` and its message are what the command ends with, `now` what the trainer says; `hash` is "" where
 * there is none. */
void cli_json_end(struct cli_report *report, tr_status status, const struct tr_train_info *now,
                  const char *hash);

/* Examples a second over the whole run so far. */
double cli_report_speed(const struct cli_report *report);

#endif
