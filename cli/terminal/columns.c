#include "cli/terminal/columns.h"

#include <stdio.h>
#include <string.h>

static void pad(struct tr_text *text, const char *cell, size_t width)
{
    size_t length = strlen(cell);
    if (length < width) tr_text_pad(text, ' ', width - length);
}

void cli_column_left(struct tr_text *text, const char *cell, size_t width)
{
    tr_text_add(text, cell);
    pad(text, cell, width);
}

void cli_column_right(struct tr_text *text, const char *cell, size_t width)
{
    pad(text, cell, width);
    tr_text_add(text, cell);
}

void cli_column_workers(struct tr_text *text, int workers, int ranks, size_t width)
{
    char cell[32];
    if (ranks > workers)
        snprintf(cell, sizeof cell, "%d+%d", workers, ranks - workers);
    else
        snprintf(cell, sizeof cell, "%d", workers);
    cli_column_right(text, cell, width);
}

char *cli_columns_end(struct tr_text *text)
{
    char *line = NULL;
    while (text->length > 0 && text->bytes[text->length - 1] == ' ') text->bytes[--text->length] = '\0';
    return tr_text_finish(text, &line) == TR_OK ? line : NULL;
}
