#include "data/text/text_records.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 65536

/* ---- lines ---- */

static tr_status split_line(const struct tr_lines *lines, bool labels, struct tr_text_record *record)
{
    const char *line = lines->line, *end = line + lines->length, *tab = memchr(line, '\t', lines->length);
    *record = (struct tr_text_record){.text = line, .length = lines->length, .label = ""};
    if (labels) {
        if (!tab)
            return tr_lines_fail(
                lines, end, "no tab and label after the text; write: text TAB label%s",
                memchr(line, ',', lines->length) ? ", or take the format csv for a table of numbers" : "");
        const char *second = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
        if (second) return tr_lines_fail(lines, second, "a second tab; write: text TAB label");
        record->length = (size_t)(tab - line);
        record->label = record->place = tab + 1;
        record->label_length = (size_t)(end - tab - 1);
    } else if (tab) {
        return tr_lines_fail(lines, tab,
                             "a tab, though the file is said to have no labels; set labels: true");
    }
    return TR_OK;
}

/* ---- rows of tables ---- */

/* Takes the text of a field up to its closing quote, over as many lines as it has; *at is after the
   opening quote, and in the end after the closing one. */
static tr_status take_quoted(struct tr_text_records *records, const char **at)
{
    struct tr_lines *lines = &records->lines;
    struct tr_lines begun = *lines;
    const char *opening = *at - 1;
    for (;;) {
        const char *end = lines->line + lines->length;
        const char *quote = memchr(*at, '"', (size_t)(end - *at));
        tr_text_add_bytes(&records->made, *at, (size_t)((quote ? quote : end) - *at));
        if (!quote) {
            tr_text_add(&records->made, "\n");
            if (!tr_lines_next(lines)) return tr_lines_fail(&begun, opening, "a quote that is never closed");
            *at = lines->line;
            continue;
        }
        *at = quote + 1;
        if (*at == end || **at != '"') return TR_OK;
        tr_text_add(&records->made, "\"");
        ++*at;
    }
}

/* Where field `count` begins, or the last one ends. */
static tr_status add_field(struct tr_text_records *records, int32_t count)
{
    if (count > COLUMNS_MAX)
        return tr_lines_fail(&records->lines, records->lines.line, "more than %d columns", COLUMNS_MAX);
    if (!tr_grow(&records->field, count, sizeof *records->field)) return TR_ENOMEM;
    records->field[count] = records->made.length;
    return TR_OK;
}

/* Splits the row that begins on the current line. */
static tr_status split_row(struct tr_text_records *records, int32_t *count)
{
    struct tr_lines *lines = &records->lines;
    const char separator = (char)records->form->separator, *at = lines->line;
    tr_status bad = TR_OK;
    records->made.length = 0;
    *count = 0;
    for (;;) {
        TR_TRY(add_field(records, (*count)++));
        if (at < lines->line + lines->length && *at == '"') {
            at++;
            TR_TRY(take_quoted(records, &at));
        }
        const char *end = lines->line + lines->length, *stop = memchr(at, separator, (size_t)(end - at));
        if (!stop) stop = end;
        bool quoted = at > lines->line && at[-1] == '"';
        if (quoted && stop > at && bad == TR_OK) bad = tr_lines_fail(lines, at, "text after a closed quote");
        tr_text_add_bytes(&records->made, at, (size_t)(stop - at));
        tr_text_add_bytes(&records->made, "", 1);
        if (records->made.failed) return TR_ENOMEM;
        if (stop == end) break;
        at = stop + 1;
    }
    TR_TRY(add_field(records, *count));
    return bad;
}

static bool is_json(const struct tr_text_records *records)
{
    return records->form->layout == TR_TEXT_JSON;
}

static const char *field_at(const struct tr_text_records *records, int32_t column, size_t *length)
{
    if (is_json(records)) {
        *length = records->json[column].length;
        return records->json[column].at ? records->json[column].at : "";
    }
    *length = records->field[column + 1] - records->field[column] - 1;
    return records->made.bytes + records->field[column];
}

/* The column that a name or number of the description means; the current row has the names. */
static tr_status find_column(const struct tr_text_records *records, const char *name, int32_t *column)
{
    const char *wanted = name;
    const bool named = is_json(records) || records->form->header;
    int64_t number;
    for (*column = 0; named && *column < records->columns; ++*column) {
        size_t length;
        const char *field =
            is_json(records) ? records->row.name[*column] : field_at(records, *column, &length);
        if (is_json(records)) length = strlen(field);
        if (strlen(name) == length && memcmp(field, name, length) == 0) return TR_OK;
    }
    if (!tr_text_int64(name, &number) && number >= 0 && number < records->columns) {
        *column = (int32_t)number;
        return TR_OK;
    }
    return tr_lines_fail(&records->lines, records->lines.line,
                         "there is no column \"%.64s\"; the table has %" PRId32 " columns%s", wanted,
                         records->columns,
                         is_json(records)        ? ", the members here"
                         : records->form->header ? ", named here"
                                                 : "; a header would name them");
}

static tr_status settle_columns(struct tr_text_records *records)
{
    const struct tr_text_form *form = records->form;
    records->text_count = form->text_columns.count ? form->text_columns.count : 1;
    records->text = tr_alloc_zero((size_t)records->text_count, sizeof *records->text);
    if (!records->text) return TR_ENOMEM;
    for (int32_t i = 0; i < form->text_columns.count; i++)
        TR_TRY(find_column(records, form->text_columns.item[i], &records->text[i]));
    records->label = records->columns - 1;
    if (form->label_column) TR_TRY(find_column(records, form->label_column, &records->label));
    for (int32_t i = 0; form->labels && i < records->text_count; i++)
        if (records->text[i] == records->label)
            return tr_lines_fail(&records->lines, records->lines.line,
                                 "column %" PRId32 " is named for text and label; set label_column",
                                 records->label);
    return TR_OK;
}

static bool next_line_with_text(struct tr_lines *lines)
{
    while (tr_lines_next(lines))
        if (lines->length > 0) return true;
    return false;
}

static tr_status begin_table(struct tr_text_records *records)
{
    struct tr_lines before = records->lines;
    if (!next_line_with_text(&records->lines)) return TR_OK;
    TR_TRY(split_row(records, &records->columns));
    TR_TRY(settle_columns(records));
    if (!records->form->header) records->lines = before;
    return TR_OK;
}

/* The members of the first object are the columns. */
static tr_status begin_json(struct tr_text_records *records)
{
    struct tr_lines before = records->lines;
    if (!next_line_with_text(&records->lines)) return TR_OK;
    TR_TRY(tr_json_row_begin(&records->row, &records->lines));
    records->columns = records->row.columns;
    records->row.line_feeds = true;
    records->json = tr_alloc_zero((size_t)records->columns, sizeof *records->json);
    if (!records->json) return TR_ENOMEM;
    TR_TRY(settle_columns(records));
    records->lines = before;
    return TR_OK;
}

static tr_status split_current(struct tr_text_records *records)
{
    int32_t count;
    if (is_json(records)) return tr_json_row_read(&records->row, &records->lines, records->json);
    TR_TRY(split_row(records, &count));
    if (count == records->columns) return TR_OK;
    return tr_lines_fail(&records->lines, records->lines.line,
                         "a row of %" PRId32 " fields; the first one has %" PRId32, count, records->columns);
}

static tr_status read_row(struct tr_text_records *records, struct tr_text_record *record)
{
    TR_TRY(split_current(records));
    records->joined.length = 0;
    for (int32_t i = 0; i < records->text_count; i++) {
        size_t length;
        const char *field = field_at(records, records->text[i], &length);
        if (i > 0) tr_text_add(&records->joined, " ");
        tr_text_add_bytes(&records->joined, field, length);
    }
    tr_text_add(&records->joined, "");
    if (records->joined.failed) return TR_ENOMEM;
    *record = (struct tr_text_record){
        .text = records->joined.bytes, .length = records->joined.length, .place = records->lines.line};
    record->label = records->form->labels ? field_at(records, records->label, &record->label_length) : "";
    return TR_OK;
}

/* ---- the walk ---- */

tr_status tr_text_records_begin(const struct tr_text_form *form, const char *path, const char *text,
                                size_t size, struct tr_text_records *records)
{
    *records = (struct tr_text_records){.lines = tr_lines_of(path, text, size), .form = form};
    return form->layout == TR_TEXT_TABLE  ? begin_table(records)
           : form->layout == TR_TEXT_JSON ? begin_json(records)
                                          : TR_OK;
}

void tr_text_records_release(struct tr_text_records *records)
{
    tr_free(records->field);
    tr_free(records->text);
    tr_text_release(&records->made);
    tr_json_row_release(&records->row);
    tr_free(records->json);
    tr_text_release(&records->joined);
}

tr_status tr_text_records_next(struct tr_text_records *records, bool *more, struct tr_text_record *record)
{
    struct tr_lines *lines = &records->lines;
    bool table = records->form->layout != TR_TEXT_LINES;
    *more = table ? next_line_with_text(lines) : tr_lines_next(lines);
    if (!*more) return TR_OK;
    return table ? read_row(records, record) : split_line(lines, records->form->labels, record);
}
