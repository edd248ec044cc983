/* Lines that fit a terminal: a line that is too long continues in the next one, below its cell, and is
 * never broken within a word.
 */
#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include "base/text/text.h"

/* Appends `text`, lines of prose or rows of a table (cells two or more blanks apart), each in at most
   `width` columns; 0: unchanged. The last cell of a row continues below itself if there is room, else
   below the row. Only a word that is wider than that stays too wide. */
void cli_wrap(struct tr_text *out, const char *text, int width);

#endif
