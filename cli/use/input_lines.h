/* Lines of standard input, as many at a time as are available: a file is read in large batches, and a
 * program at the other end of two pipes gets its answers at once.
 */
#ifndef CLI_INPUT_LINES_H
#define CLI_INPUT_LINES_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_INPUT_LINE_MAX ((size_t)1 << 26) /* bytes */

struct cli_input_line {
    int64_t number; /* from 0 */
    char *text;     /* without line feed and carriage return, in the buffer */
    size_t begin;
};

struct cli_input_lines {
    char *buffer;
    size_t used, size, room; /* bytes that were returned, that were read, and room for */
    size_t searched;         /* bytes after `used` that have no line feed */
    int64_t number;          /* lines up to here */
    bool ended;
    struct cli_input_line *line; /* [count] of the batch */
    int64_t count, most;
};

/* Batches of at most `most` lines. Release with cli_input_lines_release(), also after a failure. TR_ENOMEM.
 */
tr_status cli_input_lines_begin(int64_t most, struct cli_input_lines *lines);
void cli_input_lines_release(struct cli_input_lines *lines);

/* The next batch, in lines->line, borrowed until the next call; waits only for the first line. No line at
   the end. Blank lines are left out, but counted. TR_EIO, TR_EFORMAT for a line that is too long or has a
   byte 0. */
tr_status cli_input_lines_next(struct cli_input_lines *lines);

#endif
