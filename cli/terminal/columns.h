/* Lines of tables that are printed row by row, as runs or predictions come in: columns have their widths from
 * the beginning. (Tables that are there as a whole: base/text/table.h.)
 */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include "base/text/text.h"

/* Add a cell, and blanks behind it, or before it, where it is narrower than the column. */
void cli_column_left(struct tr_text *text, const char *cell, size_t width);
void cli_column_right(struct tr_text *text, const char *cell, size_t width);
/* The processes of a strategy: "2", or with the servers that workers have besides "2+1". */
void cli_column_workers(struct tr_text *text, int workers, int ranks, size_t width);
/* The line without blanks at its end, returned, free with tr_free(); NULL where memory was missing. */
char *cli_columns_end(struct tr_text *text);

#endif
