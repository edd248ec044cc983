/* Lines that fit a terminal: what is too long for it goes on in a line of its own, below the cell that it
 * belongs to, and is never broken within a word.
 */
#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include "base/text/text.h"

/* Appends `text`, lines of prose or rows of a table (cells two or more blanks apart), each in at most `width`
   columns; 0: as they are. The last cell of a row goes on below itself where there is room for it, else below
   the row. Only a word that is wider by itself stays too wide. */
void cli_wrap(struct tr_text *out, const char *text, int width);

#endif
