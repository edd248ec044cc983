#include "base/text/table.h"

#include "base/alloc.h"
#include "base/text/width.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CELL_SIZE   1024
#define COLUMNS_MAX 256
#define GAP         2

void tr_table_begin(struct tr_table *table, const char *columns)
{
    assert(*columns && strlen(columns) <= COLUMNS_MAX);
    *table = (struct tr_table){.columns = columns};
}

void tr_table_cell(struct tr_table *table, const char *format, ...)
{
    char cell[CELL_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cell, sizeof cell, format, arguments);
    va_end(arguments);
    tr_text_add_bytes(&table->cells, cell, strlen(cell) + 1);
    table->count++;
}

static size_t width_of(const char *string)
{
    return tr_text_columns(string, strlen(string));
}

static void add_row(const struct tr_table *table, const char **cell, int64_t count, const size_t *width,
                    struct tr_text *text)
{
    size_t owed = 0; /* blanks that are written only if something follows */
    for (int64_t i = 0; i < count; i++) {
        size_t own = width_of(*cell), pad = width[i] - own;
        bool right = table->columns[i] == 'r';
        if (right) owed += pad;
        if (own > 0) {
            tr_text_pad(text, ' ', owed);
            owed = 0;
            tr_text_add(text, *cell);
        }
        owed += (right ? 0 : pad) + GAP;
        *cell += strlen(*cell) + 1;
    }
    tr_text_add(text, "\n");
}

void tr_table_finish(struct tr_table *table, struct tr_text *text)
{
    size_t width[COLUMNS_MAX] = {0};
    int64_t columns = (int64_t)strlen(table->columns);
    const char *cell = table->cells.bytes;
    if (table->cells.failed) text->failed = true;
    if (!table->cells.failed && cell) {
        for (int64_t i = 0; i < table->count; i++) {
            size_t own = width_of(cell);
            if (own > width[i % columns]) width[i % columns] = own;
            cell += strlen(cell) + 1;
        }
        cell = table->cells.bytes;
        for (int64_t i = 0; i < table->count; i += columns)
            add_row(table, &cell, table->count - i < columns ? table->count - i : columns, width, text);
    }
    tr_text_release(&table->cells);
    *table = (struct tr_table){0};
}
