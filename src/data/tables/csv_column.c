#include "data/tables/csv_column.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/csv_fields.h"
#include "data/tables/csv_table.h"

#include <inttypes.h>
#include <string.h>

#define COLUMNS_MAX 4096

/* Finds the column by the fields of the first line; *header: whether that line has names. */
static tr_status find(const char *path, const char *column, const struct tr_csv_field *fields, int32_t count,
                      int32_t *number, bool *header)
{
    int64_t given;
    size_t length = strlen(column);
    *header = false;
    for (int32_t i = 0; i < count; i++) {
        if (fields[i].length != length || memcmp(fields[i].at, column, length) != 0) continue;
        *number = i;
        *header = true;
        return TR_OK;
    }
    if (tr_text_int64(column, &given) || given < 0 || given >= count)
        return tr_csv_no_column(path, "image", column, fields, count, true);
    *number = (int32_t)given;
    return TR_OK;
}

static tr_status add(struct tr_file_names *names, const struct tr_lines *lines, struct tr_csv_field field)
{
    if (field.length == 0)
        return tr_lines_fail(lines, field.at,
                             "no name of a file; give one, or take the row out of the table");
    if (memchr(field.at, 0, field.length))
        return tr_lines_fail(lines, field.at, "a byte 0 in a name; give a text file");
    if (!tr_grow(&names->name, names->count, sizeof *names->name)) return TR_ENOMEM;
    char *name = tr_format("%.*s", (int)field.length, field.at);
    if (!name) return TR_ENOMEM;
    names->name[names->count++] = name;
    return TR_OK;
}

static tr_status next(struct tr_lines *lines, char separator, struct tr_csv_field *fields, int32_t *count,
                      bool *more)
{
    *more = tr_csv_next(lines);
    return *more ? tr_csv_split(lines, separator, fields, COLUMNS_MAX, count) : TR_OK;
}

static tr_status read_rows(struct tr_lines *lines, const char *column, struct tr_csv_field *fields,
                           struct tr_file_names *out)
{
    int32_t columns = 0, count, number = 0;
    bool more = true, header;
    struct tr_lines first = *lines;
    if (!tr_csv_next(&first)) return tr_csv_empty(lines->path);
    char separator = tr_csv_guess(first.line, first.length);
    TR_TRY(next(lines, separator, fields, &columns, &more));
    if (columns > COLUMNS_MAX)
        return tr_fail(TR_EFORMAT, "%s: %" PRId32 " columns; 1 to %d can be read", lines->path, columns,
                       COLUMNS_MAX);
    TR_TRY(find(lines->path, column, fields, columns, &number, &header));
    if (header)
        TR_TRY(next(lines, separator, fields, &count, &more));
    else
        count = columns;
    while (more) {
        if (count != columns)
            return tr_lines_fail(lines, lines->line, "%" PRId32 " columns; the first line has %" PRId32,
                                 count, columns);
        TR_TRY(add(out, lines, fields[number]));
        TR_TRY(next(lines, separator, fields, &count, &more));
    }
    if (out->count == 0) return tr_fail(TR_EFORMAT, "%s: no row after the first line", lines->path);
    return TR_OK;
}

tr_status tr_csv_column(const char *path, const char *column, struct tr_file_names *out)
{
    struct tr_load file;
    *out = (struct tr_file_names){0};
    TR_TRY(tr_load_lines(path, &file));
    struct tr_csv_field *fields = tr_alloc(COLUMNS_MAX, sizeof *fields);
    struct tr_lines lines = tr_lines_of(path, (const char *)file.data, file.size);
    tr_status status = fields ? read_rows(&lines, column, fields, out) : TR_ENOMEM;
    tr_free(fields);
    tr_free(file.data);
    return status;
}
