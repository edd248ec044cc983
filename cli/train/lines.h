/* Lines for people about a run: its head, and one for each event. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "base/text/text.h"
#include "cli/terminal/screen.h"
#include "cli/train/facts.h"

/* Writes a line built in `text` and empties it. */
void cli_line_put(struct cli_screen *screen, struct tr_text *text);
/* Writes a line with a label and its text. */
void cli_line_fact(struct cli_screen *screen, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The lines before the first step. */
void cli_lines_head(struct cli_screen *screen, const struct cli_facts *facts);
void cli_line_step(struct cli_screen *screen, const struct cli_facts *facts,
                   const struct tr_train_event *event);
void cli_line_evaluation(struct cli_screen *screen, const struct cli_facts *facts,
                         const struct tr_train_event *event);
/* "step 100/20001" and the event. */
void cli_line_event(struct cli_screen *screen, const struct tr_train_event *event, const char *what);

#endif
