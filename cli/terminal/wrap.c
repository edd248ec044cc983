#include "cli/terminal/wrap.h"

#include "base/text/width.h"

#include <string.h>

#define ROOM  20 /* columns that are enough for continuing a cell */
#define BELOW 4  /* indentation of lines below a row */

/* A part of the text. */
struct piece {
    const char *at;
    size_t length;
};

static size_t blanks(struct piece piece)
{
    size_t count = 0;
    while (count < piece.length && piece.at[count] == ' ') count++;
    return count;
}

static struct piece without_blanks(struct piece piece)
{
    size_t count = blanks(piece);
    piece = (struct piece){piece.at + count, piece.length - count};
    while (piece.length > 0 && piece.at[piece.length - 1] == ' ') piece.length--;
    return piece;
}

static size_t columns_of(struct piece piece)
{
    return tr_text_columns(piece.at, piece.length);
}

/* Where a cell begins after `from`: the byte after two or more blanks; the length if none does. */
static size_t next_cell(struct piece line, size_t from)
{
    for (size_t i = from; i + 2 < line.length; i++)
        if (line.at[i] == ' ' && line.at[i + 1] == ' ' && line.at[i + 2] != ' ') return i + 2;
    return line.length;
}

/* Where the last cell begins; 0 where the line is a single one. */
static size_t last_cell(struct piece line)
{
    size_t last = 0;
    for (size_t at = next_cell(line, blanks(line)); at < line.length; at = next_cell(line, at)) last = at;
    return last;
}

/* Words from column `column` on, in lines that begin at `indent`; ends with a line feed. */
static void add_words(struct tr_text *out, struct piece words, size_t column, size_t indent, size_t width)
{
    bool begins = true;
    while ((words = without_blanks(words)).length > 0) {
        const char *end = memchr(words.at, ' ', words.length);
        struct piece word = {words.at, end ? (size_t)(end - words.at) : words.length};
        size_t own = columns_of(word);
        /* A word that is too wide for any line stays at the beginning of one. */
        if (!begins && column + 1 + own > width) {
            tr_text_add(out, "\n");
            tr_text_pad(out, ' ', indent);
            column = indent;
            begins = true;
        }
        if (!begins) tr_text_add(out, " ");
        tr_text_add_bytes(out, word.at, word.length);
        column += own + !begins;
        begins = false;
        words = (struct piece){word.at + word.length, words.length - word.length};
    }
    tr_text_add(out, "\n");
}

/* Cells of a row that do not fit continue below it. */
static void add_cells(struct tr_text *out, struct piece line, size_t width)
{
    size_t indent = blanks(line) + BELOW, fits = 0;
    for (size_t at = next_cell(line, blanks(line)); at < line.length; at = next_cell(line, at)) {
        struct piece before = {line.at, at};
        while (before.length > 0 && before.at[before.length - 1] == ' ') before.length--;
        if (columns_of(before) <= width) fits = at;
    }
    struct piece rest = {line.at + fits, line.length - fits};
    if (fits == 0) {
        tr_text_pad(out, ' ', blanks(line));
        add_words(out, line, blanks(line), blanks(line), width);
        return;
    }
    size_t length = fits;
    while (line.at[length - 1] == ' ') length--;
    tr_text_add_bytes(out, line.at, length);
    tr_text_add(out, "\n");
    tr_text_pad(out, ' ', indent);
    if (indent + columns_of(rest) <= width) {
        tr_text_add_bytes(out, rest.at, rest.length); /* with the blanks between its cells */
        tr_text_add(out, "\n");
    } else {
        add_words(out, rest, indent, indent, width);
    }
}

static void add_line(struct tr_text *out, struct piece line, size_t width)
{
    if (columns_of(line) <= width) {
        tr_text_add_bytes(out, line.at, line.length);
        tr_text_add(out, "\n");
        return;
    }
    size_t last = last_cell(line), column = columns_of((struct piece){line.at, last});
    if (last > 0 && column + ROOM > width) {
        add_cells(out, line, width);
        return;
    }
    struct piece words = {line.at + last, line.length - last};
    if (last == 0) column = blanks(line);
    tr_text_add_bytes(out, line.at, last > 0 ? last : column);
    add_words(out, words, column, column, width);
}

void cli_wrap(struct tr_text *out, const char *text, int width)
{
    if (width <= 0) {
        tr_text_add(out, text);
        return;
    }
    while (*text) {
        size_t length = strcspn(text, "\n");
        add_line(out, (struct piece){text, length}, (size_t)width);
        text += length;
        /* The last line keeps its end, with or without a line feed. */
        if (*text)
            text++;
        else if (out->length > 0)
            out->bytes[--out->length] = '\0';
    }
}
