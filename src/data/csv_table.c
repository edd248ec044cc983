#include "data/csv_table.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define COLUMNS_MAX (1 << 20)

static struct tr_lines table_lines(const struct tr_csv_table *table)
{
    return tr_lines_of(table->path, (const char *)table->file.data, table->file.size);
}

bool tr_csv_next(struct tr_lines *lines)
{
    do {
        if (!tr_lines_next(lines)) return false;
    } while (lines->length == 0);
    return true;
}

/* ---- columns ---- */

/* Settles separator, number of columns and header from the first line. */
static tr_status read_first_line(struct tr_csv_table *table)
{
    struct tr_lines lines = table_lines(table);
    if (!tr_csv_next(&lines)) return tr_fail(TR_EFORMAT, "%s: the set is empty", table->path);
    table->separator =
        table->options->separator ? (char)table->options->separator : tr_csv_guess(lines.line, lines.length);
    TR_TRY(tr_csv_split(&lines, table->separator, NULL, 0, &table->columns));
    if (table->columns > COLUMNS_MAX) {
        return tr_lines_fail(&lines, lines.line, "%" PRId32 " columns; at most %d can be read",
                             table->columns, COLUMNS_MAX);
    }
    size_t columns = (size_t)table->columns;
    table->fields = tr_alloc(columns, sizeof *table->fields);
    table->row = tr_alloc(columns, sizeof *table->row);
    table->is_label = tr_alloc_zero(columns, sizeof *table->is_label);
    if (!table->fields || !table->row || !table->is_label) return TR_ENOMEM;
    TR_TRY(tr_csv_split(&lines, table->separator, table->fields, table->columns, &table->columns));
    table->header = table->options->header == TR_CSV_HEADER_YES;
    for (int32_t i = 0; table->options->header == TR_CSV_HEADER_AUTO && i < table->columns; i++) {
        double number;
        if (tr_csv_number(table->fields[i], &number) != NULL) table->header = true;
    }
    return TR_OK;
}

/* The column that `name` means; the fields of the first line are at hand. */
static tr_status find_column(const struct tr_csv_table *table, const char *name, int32_t *column)
{
    size_t length = strlen(name);
    for (int32_t i = 0; table->header && i < table->columns; i++) {
        if (table->fields[i].length == length && memcmp(table->fields[i].at, name, length) == 0) {
            *column = i;
            return TR_OK;
        }
    }
    int64_t number;
    if (!tr_text_int64(name, &number) && number >= 0 && number < table->columns) {
        *column = (int32_t)number;
        return TR_OK;
    }
    return tr_fail(
        TR_EINVAL,
        "%s: label column \"%s\" is neither a name in the first line nor a number from 0 to %" PRId32,
        table->path, name, table->columns - 1);
}

static tr_status find_labels(struct tr_csv_table *table)
{
    const struct tr_csv_options *options = table->options;
    if (options->label == TR_CSV_NONE) {
        if (options->label_columns.count == 0) return TR_OK;
        return tr_fail(TR_EINVAL, "%s: label_columns are given, but label is none; set label: class or value",
                       table->path);
    }
    if (options->label_columns.count == 0) {
        table->is_label[table->columns - 1] = true;
        table->labels = 1;
    }
    for (int32_t i = 0; i < options->label_columns.count; i++) {
        int32_t column = 0;
        TR_TRY(find_column(table, options->label_columns.item[i], &column));
        if (table->is_label[column]) {
            return tr_fail(TR_EINVAL, "%s: label column \"%s\" is named twice", table->path,
                           options->label_columns.item[i]);
        }
        table->is_label[column] = true;
        table->labels++;
    }
    if (options->label == TR_CSV_CLASS && table->labels != 1) {
        return tr_fail(TR_EINVAL,
                       "%s: %" PRId32 " label columns; a class has one; set label: value to predict numbers",
                       table->path, table->labels);
    }
    if (table->labels == table->columns) {
        return tr_fail(TR_EFORMAT,
                       "%s: no feature columns: the line has %" PRId32 " columns, %" PRId32
                       " are labels; check "
                       "the separator",
                       table->path, table->columns, table->labels);
    }
    return TR_OK;
}

/* ---- rows ---- */

static tr_status check_class(const struct tr_csv_table *table, const struct tr_lines *lines, const char *at,
                             double number)
{
    int32_t limit = table->classes > 0 ? table->classes : TR_CSV_CLASSES_MAX;
    if (number >= 0 && number < limit && number == (double)(int32_t)number) return TR_OK;
    return tr_lines_fail(lines, at,
                         "label %g is not a whole number from 0 to %" PRId32
                         "; correct the line, set classes, or "
                         "set label: value",
                         number, limit - 1);
}

tr_status tr_csv_read(struct tr_csv_table *table, const struct tr_lines *lines)
{
    int32_t count;
    TR_TRY(tr_csv_split(lines, table->separator, table->fields, table->columns, &count));
    if (count != table->columns) {
        return tr_lines_fail(lines, lines->line, "%" PRId32 " columns; the first line has %" PRId32, count,
                             table->columns);
    }
    for (int32_t i = 0; i < count; i++) {
        struct tr_csv_field field = table->fields[i];
        const char *wrong = tr_csv_number(field, &table->row[i]);
        if (!wrong && fabs(table->row[i]) > (double)FLT_MAX) wrong = "is too large for a float";
        if (wrong) {
            int shown = field.length < 40 ? (int)field.length : 40;
            return tr_lines_fail(lines, field.at, "field %" PRId32 " \"%.*s\" %s", i, shown, field.at, wrong);
        }
        if (table->is_label[i] && table->options->label == TR_CSV_CLASS) {
            TR_TRY(check_class(table, lines, field.at, table->row[i]));
        }
    }
    return TR_OK;
}

struct tr_lines tr_csv_rows(const struct tr_csv_table *table)
{
    struct tr_lines lines = table_lines(table);
    if (table->header) tr_csv_next(&lines);
    return lines;
}

tr_status tr_csv_table_open(const char *path, const struct tr_csv_options *options,
                            struct tr_csv_table *table)
{
    *table = (struct tr_csv_table){.path = path, .options = options};
    TR_TRY(tr_load_file(path, &table->file));
    TR_TRY(read_first_line(table));
    return find_labels(table);
}

void tr_csv_table_release(struct tr_csv_table *table)
{
    tr_free(table->row);
    tr_free(table->fields);
    tr_free(table->is_label);
    tr_free(table->file.data);
}
