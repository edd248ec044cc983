/* Tables for people: cells in rows, columns as wide as their widest cell, two blanks apart.
 *
 *     struct tr_table table;
 *     tr_table_begin(&table, "lr");                 one letter a column: left or right
 *     tr_table_cell(&table, "conv1");
 *     tr_table_cell(&table, "%d", 832);             cells fill row after row
 *     tr_table_finish(&table, &text);               appended to a tr_text
 *
 * A failed allocation is remembered and fails the text. Widths count UTF-8 characters.
 */
#ifndef TR_BASE_TABLE_H
#define TR_BASE_TABLE_H

#include "base/text/text.h"

struct tr_table {
    const char *columns;  /* one letter for each column; borrowed until the table is finished */
    struct tr_text cells; /* each ends with a NUL */
    int64_t count;
};

void tr_table_begin(struct tr_table *table, const char *columns);
void tr_table_cell(struct tr_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the table to `text`, each row with a line feed, no blanks at its end; missing cells of the last row
   are empty. Releases the table. */
void tr_table_finish(struct tr_table *table, struct tr_text *text);

#endif
