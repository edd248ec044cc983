/* The processes' lines on stderr, on their way through the launcher: notes are taken out, and equal lines of
 * several processes are printed once.
 */
#ifndef CLI_LAUNCH_LINES_H
#define CLI_LAUNCH_LINES_H

#include "cli/launch/launched.h"

#define CLI_LINE_MOST  4096 /* bytes of a line that are processed together */
#define CLI_LINES_KEPT 16   /* lines that are compared with new ones */

/* The lines of all processes, and the listener of their notes. */
struct cli_said {
    const char *token;
    void (*hear)(void *user, const struct cli_note *note);
    void *user;
    char *line[CLI_LINES_KEPT];
    int next;
};

/* One stream of lines. */
struct cli_lines {
    struct cli_said *said;
    int descriptor; /* its source, for the caller */
    char line[CLI_LINE_MOST + 1];
    size_t length;
    bool passing; /* the beginning of this line has been forwarded */
};

/* `token` is borrowed until the end; `hear` is called for each note. */
void cli_said_begin(struct cli_said *said, const char *token,
                    void (*hear)(void *user, const struct cli_note *note), void *user);
void cli_said_end(struct cli_said *said);

/* `said` is borrowed until the end. */
void cli_lines_begin(struct cli_lines *lines, struct cli_said *said, int descriptor);
/* Takes more output; whole lines are forwarded to stderr. */
void cli_lines_add(struct cli_lines *lines, const char *bytes, size_t count);
/* Forwards a line without end when nothing has come for a while. */
void cli_lines_flush(struct cli_lines *lines);
/* Forwards the rest. */
void cli_lines_end(struct cli_lines *lines);

#endif
