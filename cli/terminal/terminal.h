/* The terminal, file or pipe behind a stream, and the drawing it allows. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

/* A terminal that understands cursor movements; pipes, files and TERM=dumb do not. */
bool cli_terminal_interactive(int descriptor);
/* Columns at this moment, 80 if unknown. */
int cli_terminal_width(int descriptor);
/* Columns that lines are folded to; 0: not a terminal, or too narrow for any table. */
int cli_terminal_fold(int descriptor);
/* Colours are wanted: NO_COLOR is not set. */
bool cli_terminal_color(void);
/* Characters beyond ASCII can be shown. */
bool cli_terminal_unicode(void);

#endif
