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

const char *cli_workers_text(int workers, int ranks, char buffer[CLI_WORKERS_SIZE])
{
    if (ranks > workers)
        snprintf(buffer, CLI_WORKERS_SIZE, "%d+%d", workers, ranks - workers);
    else
        snprintf(buffer, CLI_WORKERS_SIZE, "%d", workers);
    return buffer;
}

#define NAME_LEAST 12 /* the narrowest names before a column is hidden */

static size_t figures_width(const struct cli_layout *layout)
{
    size_t sum = 0;
    for (int i = 0; i < layout->count; i++)
        if (!(layout->hidden >> i & 1)) sum += layout->column[i].width;
    return sum;
}

struct cli_layout cli_layout_make(const struct cli_column *column, int count, uint32_t unused, size_t name,
                                  size_t tail, int width)
{
    struct cli_layout layout = {column, count, name, unused};
    size_t least = name < NAME_LEAST ? name : NAME_LEAST;
    if (width <= 0) return layout;
    size_t room = (size_t)width;
    for (;;) {
        int first = -1;
        size_t taken = figures_width(&layout) + tail;
        if (taken + name <= room) return layout;
        for (int i = 0; i < count; i++)
            if (!(layout.hidden >> i & 1) && column[i].drop > (first < 0 ? 0 : column[first].drop)) first = i;
        if (first < 0 || taken + least <= room) {
            /* Names are shortened if that is enough, or if they are all there is. */
            layout.name = taken + least <= room ? room - taken : least;
            return layout;
        }
        layout.hidden |= UINT32_C(1) << first;
    }
}

void cli_layout_name(const struct cli_layout *layout, struct tr_text *text, const char *name)
{
    cli_column_left(text, name, layout->name);
    if (strlen(name) <= layout->name) return;
    tr_text_add(text, "\n");
    tr_text_pad(text, ' ', layout->name);
}

void cli_layout_cell(const struct cli_layout *layout, struct tr_text *text, int column, const char *cell)
{
    if (!(layout->hidden >> column & 1)) cli_column_right(text, cell, layout->column[column].width);
}

void cli_layout_heads(const struct cli_layout *layout, struct tr_text *text, const char *name)
{
    cli_column_left(text, name, layout->name);
    for (int i = 0; i < layout->count; i++) cli_layout_cell(layout, text, i, layout->column[i].head);
}

void cli_layout_add_hidden(const struct cli_layout *layout, uint32_t unused, struct tr_text *text)
{
    const char *between = "";
    for (int i = 0; i < layout->count; i++) {
        if (!((layout->hidden & ~unused) >> i & 1)) continue;
        tr_text_addf(text, "%s%s", between, layout->column[i].head);
        between = ", ";
    }
}

char *cli_columns_end(struct tr_text *text)
{
    char *line = NULL;
    while (text->length > 0 && text->bytes[text->length - 1] == ' ') text->bytes[--text->length] = '\0';
    return tr_text_finish(text, &line) == TR_OK ? line : NULL;
}
