/* The lines of `--log json` and of the journal: one object each, told apart by "event". docs/command.md lists
 * the members. */
#ifndef CLI_REPORT_JSON_H
#define CLI_REPORT_JSON_H

#include "report.h"

void cli_json_start(struct cli_report *report);
void cli_json_event(struct cli_report *report, const struct tr_train_event *event);
/* `status` and its message are what the command ends with, `step` the steps done; `hash` is "" where there is
 * none. */
void cli_json_end(struct cli_report *report, tr_status status, int64_t step, const char *hash);

/* Examples a second over the whole run so far. */
double cli_report_speed(const struct cli_report *report);

#endif
