/* Markdown in the language of man(7). */
#include "cli/manual/manual.h"

#include "base/text/text.h"

#include <string.h>

/* One character, at the beginning of a line or within it. */
static void add_character(struct tr_text *roff, char c, bool begins)
{
    if (c == '\\')
        tr_text_add(roff, "\\e");
    else if (c == '-')
        tr_text_add(roff, "\\-");
    else if (begins && (c == '.' || c == '\''))
        tr_text_addf(roff, "\\&%c", c);
    else if (c == '\'')
        tr_text_add(roff, "\\(aq");
    else if (c == '^')
        tr_text_add(roff, "\\(ha");
    else if (c == '~')
        tr_text_add(roff, "\\(ti");
    else
        tr_text_add_bytes(roff, &c, 1);
}

void cli_roff_text(struct tr_text *roff, const char *text, size_t length)
{
    bool bold = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '`') {
            bold = !bold;
            tr_text_add(roff, bold ? "\\fB" : "\\fR");
        } else if (!(text[i] == '\\' && i + 1 < length && text[i + 1] == '|')) {
            add_character(roff, text[i], i == 0);
        }
    }
    if (bold) tr_text_add(roff, "\\fR");
}

static size_t trimmed(const char **at, size_t length)
{
    while (length > 0 && **at == ' ') (*at)++, length--;
    while (length > 0 && (*at)[length - 1] == ' ') length--;
    return length;
}

/* The next cell of a row "| a | b |", whose bars within a cell are escaped: *at moves after it. */
static size_t next_cell(const char **at, const char *end, const char **cell)
{
    const char *from = *at;
    while (from < end && !(*from == '|' && (from == *at || from[-1] != '\\'))) from++;
    *cell = *at;
    size_t length = trimmed(cell, (size_t)(from - *at));
    *at = from < end ? from + 1 : end;
    return length;
}

/* | key | value | default | meaning | */
static void add_row(struct tr_text *roff, const char *line, size_t length)
{
    const char *at = line + 1, *end = line + length, *cell[4];
    size_t size[4];
    for (int i = 0; i < 4; i++) size[i] = next_cell(&at, end, &cell[i]);
    tr_text_add(roff, ".TP\n");
    cli_roff_text(roff, cell[0], size[0]);
    if (size[1] > 0) {
        tr_text_add(roff, " (");
        cli_roff_text(roff, cell[1], size[1]);
        if (size[2] > 0)
            tr_text_add(roff, size[2] == 8 && memcmp(cell[2], "required", 8) == 0 ? "; " : "; default ");
        cli_roff_text(roff, cell[2], size[2]);
        tr_text_add(roff, ")");
    }
    tr_text_add(roff, "\n");
    if (size[3] > 0)
        cli_roff_text(roff, cell[3], size[3]);
    else
        tr_text_add(roff, "\\&");
    tr_text_add(roff, "\n");
}

static void add_heading(struct tr_text *roff, const char *line, size_t length)
{
    size_t level = strspn(line, "#");
    const char *text = line + level;
    length = trimmed(&text, length - level);
    tr_text_add(roff, level < 3 ? ".SH " : ".SS ");
    for (size_t i = 0; i < length; i++) {
        char c = level < 3 ? tr_text_upper(text[i]) : text[i];
        if (c == '"')
            tr_text_add(roff, "\\(dq");
        else if (c != '`')
            add_character(roff, c, false);
    }
    tr_text_add(roff, "\n");
}

void cli_roff_markdown(struct tr_text *roff, const char *markdown)
{
    enum { HEADING, PARAGRAPH, TABLE, CODE } before = HEADING;
    bool apart = false; /* an empty line came before */
    for (const char *line = markdown; *line;) {
        size_t length = strcspn(line, "\n");
        bool code = strncmp(line, "    ", 4) == 0;
        if (before == CODE && !code && length > 0) tr_text_add(roff, ".EE\n");
        if (length == 0) {
            apart = true;
        } else if (*line == '#') {
            add_heading(roff, line, length);
            before = HEADING;
        } else if (*line == '|') {
            /* The head of a table is the row before its rule. */
            const char *next = line + length + (line[length] == '\n');
            bool head = strncmp(next, "|---", 4) == 0;
            if (!head && strncmp(line, "|---", 4) != 0) add_row(roff, line, length);
            before = TABLE;
        } else if (code) {
            if (before != CODE) tr_text_add(roff, ".PP\n.EX\n");
            cli_roff_text(roff, line, length);
            tr_text_add(roff, "\n");
            before = CODE;
        } else {
            if ((apart && before == PARAGRAPH) || before == TABLE || before == CODE)
                tr_text_add(roff, ".PP\n");
            cli_roff_text(roff, line, length);
            tr_text_add(roff, "\n");
            before = PARAGRAPH;
        }
        if (length > 0) apart = false;
        line += length + (line[length] == '\n');
    }
    if (before == CODE) tr_text_add(roff, ".EE\n");
}
