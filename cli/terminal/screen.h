/* A stream of lines with a progress line below them.
 *
 * On a terminal the progress line stands under the last line, is redrawn in place at most ten times a second,
 * and lines scroll above it; each change is one write, so that nothing flickers. Elsewhere there are only
 * lines.
 *
 * Invariant: while a progress line is shown, the cursor is at its end, and all output to the terminal goes
 * through the screen.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include "cli/terminal/progress.h"

#include <stdio.h>

struct cli_screen {
    FILE *stream; /* stdout or stderr, borrowed */
    bool interactive;
    struct cli_progress_style style;
    bool shown;         /* a progress line is on the screen */
    struct tr_text bar; /* its text */
    double drawn;       /* its time, in seconds of the clock */
};

/* Begins on `stream` (borrowed until the end). One screen at a time; it makes room for messages. */
void cli_screen_begin(struct cli_screen *screen, FILE *stream);
/* Writes one line (without line feed). */
void cli_screen_line(struct cli_screen *screen, const char *line);
/* Writes the lines of a text and frees it with tr_free(). TR_ENOMEM if it is NULL, as texts are when
 * memory fails.
 */
tr_status cli_screen_text(struct cli_screen *screen, char *text);
/* Shows or redraws the progress line; ignored without a terminal, or too soon after the last time. */
void cli_screen_progress(struct cli_screen *screen, const struct cli_progress *progress);
/* Changes the progress line without drawing it: the next line redraws it. Nothing if none is shown. */
void cli_screen_renew(struct cli_screen *screen, const struct cli_progress *progress);
/* As cli_screen_progress() with any text, which is cut to the width of the terminal. ASCII. */
void cli_screen_status(struct cli_screen *screen, const char *status);
/* Removes the progress line and releases memory. May be called again. */
void cli_screen_end(struct cli_screen *screen);

#endif
