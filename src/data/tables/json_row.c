#include "data/tables/json_row.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX (1 << 16)

/* A line while it is read: its values one after the other, each with its name. */
struct walk {
    struct tr_json_row *row;
    const struct tr_lines *lines;
    bool learns;
    int32_t next;         /* the column of the next value, if members keep their order */
    int64_t *begin, *end; /* [columns] place of each field in the text; begin < 0: missing */
    struct tr_text text;
};

static tr_status add_column(struct walk *walk, const char *name, int32_t *column)
{
    struct tr_json_row *row = walk->row;
    if (row->columns == COLUMNS_MAX)
        return tr_lines_fail(walk->lines, walk->lines->line, "more than %d columns", COLUMNS_MAX);
    if (row->columns == row->room) {
        int32_t room = 2 * row->room + 16;
        char **grown = tr_realloc(row->name, (size_t)room, sizeof *grown);
        if (!grown) return TR_ENOMEM;
        row->name = grown;
        row->room = room;
    }
    if (!(row->name[row->columns] = tr_strdup(name))) return TR_ENOMEM;
    *column = row->columns++;
    return TR_OK;
}

static tr_status find_column(struct walk *walk, const char *name, int32_t *column)
{
    const struct tr_json_row *row = walk->row;
    if (walk->learns) return add_column(walk, name, column);
    for (int32_t i = 0; i < row->columns; i++) {
        *column = (walk->next + i) % row->columns;
        if (strcmp(row->name[*column], name) == 0) return TR_OK;
    }
    return tr_lines_fail(
        walk->lines, walk->lines->line,
        "member \"%.60s\" is not in the first line, whose members are the columns; give all lines the "
        "same",
        name);
}

static tr_status add_field(struct walk *walk, const char *name, const char *text)
{
    int32_t column = 0;
    TR_TRY(find_column(walk, name, &column));
    walk->next = column + 1;
    if (walk->learns) return TR_OK;
    const bool may = walk->row->line_feeds || (walk->row->skipped && walk->row->skipped[column]);
    if (!may && text[strcspn(text, "\n")])
        return tr_lines_fail(walk->lines, walk->lines->line, "\"%.60s\" has a line feed, which no name has",
                             name);
    if (walk->begin[column] >= 0) /* "a.b" is both a member and "b" within an object "a" */
        return tr_lines_fail(walk->lines, walk->lines->line, "two values are called \"%.60s\"", name);
    walk->begin[column] = (int64_t)walk->text.length;
    tr_text_add(&walk->text, text);
    walk->end[column] = (int64_t)walk->text.length;
    return walk->text.failed ? TR_ENOMEM : TR_OK;
}

/* Recursion is limited by the depth of documents. */
static tr_status add_value(struct walk *walk, const char *name, const struct tr_json_value *value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    switch (value->kind) {
    case TR_JSON_NULL:
        return add_field(walk, name, "");
    case TR_JSON_BOOL:
        return add_field(walk, name, value->truth ? "1" : "0");
    case TR_JSON_INTEGER:
        snprintf(number, sizeof number, "%" PRId64, value->integer);
        return add_field(walk, name, number);
    case TR_JSON_REAL:
        return add_field(walk, name, tr_text_from_double(value->real, number));
    case TR_JSON_TEXT:
        return add_field(walk, name, value->text);
    case TR_JSON_ARRAY:
    case TR_JSON_OBJECT:
        break;
    }
    int64_t index = 0;
    for (const struct tr_json_value *at = value->first; at; at = at->next, index++) {
        bool top = !name[0];
        char *inner = value->kind == TR_JSON_ARRAY ? tr_format("%s%s%" PRId64, name, top ? "" : ".", index)
                                                   : tr_format("%s%s%s", name, top ? "" : ".", at->key);
        tr_status status = inner ? add_value(walk, inner, at) : TR_ENOMEM;
        tr_free(inner);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

static tr_status walk_line(struct walk *walk)
{
    const struct tr_lines *lines = walk->lines;
    tr_json *document;
    tr_status status = tr_json_parse(lines->line, lines->length, "the line", &document);
    if (status == TR_EFORMAT)
        return tr_lines_fail(lines, lines->line, "is no JSON object: %s", tr_error_message());
    if (status != TR_OK) return status;
    status = add_value(walk, "", tr_json_root(document));
    tr_json_destroy(&document);
    return status;
}

tr_status tr_json_row_begin(struct tr_json_row *row, const struct tr_lines *lines)
{
    struct walk walk = {.row = row, .lines = lines, .learns = true};
    TR_TRY(walk_line(&walk));
    for (int32_t i = 0; i < row->columns; i++)
        for (int32_t k = 0; k < i && row->columns <= 4096; k++)
            if (strcmp(row->name[i], row->name[k]) == 0)
                return tr_lines_fail(lines, lines->line, "two values are called \"%.60s\"", row->name[i]);
    if (row->columns > 0) return TR_OK;
    return tr_lines_fail(lines, lines->line, "has no members; the first line names the columns");
}

tr_status tr_json_row_read(struct tr_json_row *row, const struct tr_lines *lines, struct tr_csv_field *fields)
{
    struct walk walk = {.row = row, .lines = lines, .text = TR_TEXT_INIT};
    const size_t columns = (size_t)row->columns;
    walk.begin = tr_alloc(columns, sizeof *walk.begin);
    walk.end = tr_alloc(columns, sizeof *walk.end);
    tr_status status = walk.begin && walk.end ? TR_OK : TR_ENOMEM;
    for (size_t i = 0; i < columns && status == TR_OK; i++) walk.begin[i] = -1;
    if (status == TR_OK) status = walk_line(&walk);
    tr_free(row->text);
    row->text = NULL;
    if (status == TR_OK) status = tr_text_finish(&walk.text, &row->text);
    for (size_t i = 0; i < columns && status == TR_OK; i++)
        fields[i] = walk.begin[i] < 0 ? (struct tr_csv_field){row->text, 0}
                                      : (struct tr_csv_field){row->text + walk.begin[i],
                                                              (size_t)(walk.end[i] - walk.begin[i])};
    tr_text_release(&walk.text);
    tr_free(walk.begin);
    tr_free(walk.end);
    return status;
}

void tr_json_row_release(struct tr_json_row *row)
{
    for (int32_t i = 0; i < row->columns; i++) tr_free(row->name[i]);
    tr_free(row->name);
    tr_free(row->text);
    *row = (struct tr_json_row){0};
}
