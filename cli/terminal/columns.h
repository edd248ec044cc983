/* Lines of tables that are printed row by row, as runs or predictions come in: columns have fixed widths
 * from the beginning. (For complete tables: base/text/table.h.)
 */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include "base/text/text.h"

#include <stddef.h>
#include <stdint.h>

/* A column of figures after the name that each row begins with. */
struct cli_column {
    const char *head;
    size_t width; /* with the blanks before it */
    int drop;     /* on narrow terminals columns are hidden, the greatest number first; 0: never */
};

/* The visible columns of a table, and the width of its names. */
struct cli_layout {
    const struct cli_column *column;
    int count;
    size_t name;
    uint32_t hidden; /* bits */
};

/* A table of `count` columns (those in the bits `unused` are not mentioned) between names, the longest of
   `name` columns, and a text of `tail` columns, fitted into `width`; 0: not fitted. */
struct cli_layout cli_layout_make(const struct cli_column *column, int count, uint32_t unused, size_t name,
                                  size_t tail, int width);
/* Begins a row: longer names get a separate line. */
void cli_layout_name(const struct cli_layout *layout, struct tr_text *text, const char *name);
/* The cell of a column, unless that is hidden. */
void cli_layout_cell(const struct cli_layout *layout, struct tr_text *text, int column, const char *cell);
void cli_layout_heads(const struct cli_layout *layout, struct tr_text *text, const char *name);
/* "threads, staleness": the hidden columns, without the bits `unused`; "" if none is hidden. */
void cli_layout_add_hidden(const struct cli_layout *layout, uint32_t unused, struct tr_text *text);

/* Add a cell, and blanks after it, or before it, where it is narrower than the column. */
void cli_column_left(struct tr_text *text, const char *cell, size_t width);
void cli_column_right(struct tr_text *text, const char *cell, size_t width);
/* The processes of a strategy: "2", or with additional servers "2+1". Returns `buffer`. */
#define CLI_WORKERS_SIZE 32
const char *cli_workers_text(int workers, int ranks, char buffer[CLI_WORKERS_SIZE]);
/* The line without blanks at its end, returned, free with tr_free(); NULL where memory was missing. */
char *cli_columns_end(struct tr_text *text);

#endif
