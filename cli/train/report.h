/* The output of a run for a person or a program: its head, a line for each event, a summary; as text or as
 * JSON.
 *
 * Text goes to stdout, with a progress line on a terminal. With JSON, stdout has one object per line, and
 * the text for people goes to stderr.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/terminal/screen.h"
#include "cli/train/facts.h"

enum cli_log { CLI_LOG_TEXT, CLI_LOG_JSON, CLI_LOG_NONE };

struct cli_report {
    /* Set by the caller before cli_report_begin(). */
    tr_trainer *trainer; /* borrowed until the end */
    const char *out;     /* directory of checkpoints, borrowed until the end */
    enum cli_log log;
    bool quiet;    /* only warnings, in addition to JSON */
    bool profiles; /* print the profile of the run */
    bool later;    /* another process reports the run, and this one only after that one has died: no head */

    /* Private. */
    struct cli_facts facts;
    struct cli_screen screen;
    bool broken; /* stdout could not be written: the run was asked to stop */
};

/* Prints the head. On failure nothing has to be ended. */
tr_status cli_report_begin(struct cli_report *report);
/* The listener of the trainer; `report` is a struct cli_report. */
void cli_report_event(void *report, const struct tr_train_event *event);
/* Prints the summary of a run that ended with `status`, and returns the status of the command: TR_EIO
   instead when the output is broken. After an interruption the message shows how to continue. */
tr_status cli_report_end(struct cli_report *report, tr_status status);

/* Instead of cli_report_end() if nothing was reported. */
void cli_report_drop(struct cli_report *report);

#endif
