#include "data/tables/csv_table.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX  (1 << 20)
#define LEFT_BEHIND  ((size_t)8 << 20) /* bytes */
#define SUBJECT_SIZE 80

static struct tr_lines table_lines(const struct tr_csv_table *table)
{
    if (table->options->spill)
        return tr_lines_of(table->path, (const char *)table->text.data, table->text.size);
    return tr_lines_of(table->path, (const char *)table->file.data, table->file.size);
}

/* Releases the part of a text in a file that was read. */
static void leave_behind(struct tr_csv_table *table, const struct tr_lines *lines)
{
    if (!table->text.data) return;
    size_t at = (size_t)(lines->line - (const char *)table->text.data);
    if (at < table->left) table->left = 0; /* a new walk began */
    if (at - table->left < LEFT_BEHIND) return;
    tr_spilled_text_leave(&table->text);
    table->left = at;
}

tr_status tr_csv_empty(const char *path)
{
    return tr_fail(
        TR_EFORMAT,
        "%s: the file is empty; a table has a line for each example, and may have the names of its "
        "columns in the first",
        path);
}

bool tr_csv_next(struct tr_lines *lines)
{
    do {
        if (!tr_lines_next(lines)) return false;
    } while (lines->length == 0);
    return true;
}

/* ---- columns ---- */

static bool is_number(struct tr_csv_field field)
{
    double number;
    return tr_csv_number(field, &number) == NULL;
}

/* The only label column, where it is known without names of columns; else -1. */
static int32_t plain_label_column(const struct tr_csv_table *table)
{
    const struct tr_csv_options *options = table->options;
    int64_t number;
    if (options->label == TR_CSV_NONE || options->label == TR_CSV_VALUE) return -1;
    if (options->label_columns.count == 0) return table->columns - 1;
    if (options->label_columns.count > 1 || tr_text_int64(options->label_columns.item[0], &number)) return -1;
    return number >= 0 && number < table->columns ? (int32_t)number : -1;
}

static bool is_listed_by_number(const struct tr_string_list *list, int32_t column)
{
    int64_t number;
    for (int32_t i = 0; i < list->count; i++)
        if (!tr_text_int64(list->item[i], &number) && number == column) return true;
    return false;
}

/* Whether options that name columns by number declare that the column holds no numbers. */
static bool is_no_number_by_number(const struct tr_csv_table *table, int32_t column)
{
    return is_listed_by_number(&table->options->skip_columns, column) ||
           is_listed_by_number(&table->options->categories, column);
}

/* A field that is not a number makes the first line a header. The class is an exception, since it may be a
   name. Names of columns are seldom numbers: where some fields are numbers, the line may be a row with a
   bad field, and leaving it out must be reported. */
static void guess_header(struct tr_csv_table *table, const struct tr_lines *lines)
{
    int32_t numbers = 0, name = -1, label = plain_label_column(table);
    for (int32_t i = 0; i < table->columns; i++) {
        bool gap = table->options->missing != TR_MISSING_STOP && tr_csv_is_missing(table->fields[i]);
        if (is_number(table->fields[i]))
            numbers++;
        else if (name < 0 && i != label && !gap && !is_no_number_by_number(table, i))
            name = i;
    }
    /* With nothing but a label and gaps, the line may be a row or a header. */
    if (name < 0 && numbers == 0) name = 0;
    table->header = name >= 0;
    if (name < 0 || numbers == 0) return;
    struct tr_csv_field field = table->fields[name];
    int shown = field.length < 40 ? (int)field.length : 40;
    tr_log_line(TR_LOG_WARNING,
                "%s:%" PRId64 ": the line is taken for a header, since field %" PRId32
                " \"%.*s\" is no number, but %" PRId32 " of %" PRId32
                " fields are; set header: no if it is a row, or header: yes",
                table->path, lines->number, name, shown, field.at, numbers, table->columns);
}

/* The fields of the current line, at most `columns` of them. */
static tr_status split(struct tr_csv_table *table, const struct tr_lines *lines, int32_t *count)
{
    if (!table->options->json)
        return tr_csv_split(lines, table->separator, table->fields, table->columns, count);
    *count = table->columns;
    return tr_json_row_read(&table->json, lines, table->fields);
}

/* The place of a field, for messages. */
static const char *place_of(const struct tr_csv_table *table, const struct tr_lines *lines,
                            struct tr_csv_field field)
{
    return table->options->json ? lines->line : field.at;
}

/* Gives names of columns to the fields of the first line. */
static void take_names(struct tr_csv_table *table)
{
    for (int32_t i = 0; i < table->columns; i++)
        table->fields[i] = (struct tr_csv_field){table->json.name[i], strlen(table->json.name[i])};
    table->header = true; /* until the columns are found */
}

static tr_status count_columns(struct tr_csv_table *table, const struct tr_lines *lines)
{
    if (table->options->json) {
        TR_TRY(tr_json_row_begin(&table->json, lines));
        table->columns = table->json.columns;
        return TR_OK;
    }
    table->separator = table->options->separator ? (char)table->options->separator
                                                 : tr_csv_guess(lines->line, lines->length);
    return tr_csv_split(lines, table->separator, NULL, 0, &table->columns);
}

/* Settles separator, number of columns and header from the first line. */
static tr_status read_first_line(struct tr_csv_table *table)
{
    struct tr_lines lines = table_lines(table);
    if (!tr_csv_next(&lines)) return tr_csv_empty(table->path);
    TR_TRY(count_columns(table, &lines));
    if (table->columns > COLUMNS_MAX) {
        return tr_lines_fail(&lines, lines.line, "%" PRId32 " columns; at most %d can be read",
                             table->columns, COLUMNS_MAX);
    }
    size_t columns = (size_t)table->columns;
    table->fields = tr_alloc(columns, sizeof *table->fields);
    table->row = tr_alloc(columns, sizeof *table->row);
    table->is_label = tr_alloc_zero(columns, sizeof *table->is_label);
    table->is_skipped = tr_alloc_zero(columns, sizeof *table->is_skipped);
    table->feature = tr_alloc_zero(columns, sizeof *table->feature);
    if (!table->fields || !table->row || !table->is_label || !table->is_skipped || !table->feature)
        return TR_ENOMEM;
    if (table->options->json) {
        take_names(table);
        return TR_OK;
    }
    TR_TRY(tr_csv_split(&lines, table->separator, table->fields, table->columns, &table->columns));
    table->header = table->options->header == TR_CSV_HEADER_YES;
    if (table->options->header == TR_CSV_HEADER_AUTO) guess_header(table, &lines);
    return TR_OK;
}

tr_status tr_csv_find_column(const struct tr_csv_table *table, const char *what, const char *name,
                             int32_t *column)
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
    return tr_csv_no_column(table->path, what, name, table->fields, table->columns, table->header);
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
        TR_TRY(tr_csv_find_column(table, "label", options->label_columns.item[i], &column));
        if (table->is_label[column]) {
            return tr_fail(TR_EINVAL, "%s: label column \"%s\" is named twice", table->path,
                           options->label_columns.item[i]);
        }
        table->is_label[column] = true;
        table->labels++;
    }
    if (options->label != TR_CSV_VALUE && table->labels != 1) {
        return tr_fail(TR_EINVAL,
                       "%s: %" PRId32 " label columns; a class has one; set label: value to predict numbers",
                       table->path, table->labels);
    }
    return TR_OK;
}

/* Whether the options name every column, as a label or as left out. */
static bool options_name_all(const struct tr_csv_table *table)
{
    const struct tr_csv_options *options = table->options;
    return options->label_columns.count > 0 && options->skip_columns.count > 0 &&
           options->label_columns.count + options->skip_columns.count >= table->columns;
}

/* Marks the columns to leave out; all others are features. */
static tr_status find_skipped(struct tr_csv_table *table)
{
    const struct tr_string_list *skipped = &table->options->skip_columns;
    table->features = table->columns - table->labels;
    for (int32_t i = 0; i < skipped->count; i++) {
        int32_t column = 0;
        TR_TRY(tr_csv_find_column(table, "skipped", skipped->item[i], &column));
        if (table->is_label[column])
            return tr_fail(
                TR_EINVAL,
                "%s: skipped column \"%s\" is the label; name the label's column by label_columns, or "
                "set label: none",
                table->path, skipped->item[i]);
        table->features -= !table->is_skipped[column];
        table->is_skipped[column] = true;
    }
    /* If options name all columns as labels or left out, only labels are wanted: a joined source has the
       features. */
    bool wanted = options_name_all(table);
    if (table->features > 0 || wanted) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: no feature columns: the line has %" PRId32 " columns, %" PRId32
                   " are labels; check the separator",
                   table->path, table->columns, table->labels);
}

/* Marks the columns that hold names. */
static tr_status find_categories(struct tr_csv_table *table)
{
    const struct tr_string_list *given = &table->options->categories;
    int32_t features = 0;
    for (int32_t i = 0; i < table->columns; i++)
        table->feature[i] = table->is_label[i] || table->is_skipped[i] ? -1 : features++;
    if (given->count == 0) return TR_OK;
    table->is_category = tr_alloc_zero((size_t)features + 1, sizeof *table->is_category);
    if (!table->is_category) return TR_ENOMEM;
    TR_TRY(tr_categories_create(features, &table->categories));
    for (int32_t i = 0; i < given->count; i++) {
        int32_t column = 0;
        TR_TRY(tr_csv_find_column(table, "category", given->item[i], &column));
        if (table->feature[column] < 0)
            return tr_fail(TR_EINVAL, "%s: column \"%s\" of categories is %s; name features there",
                           table->path, given->item[i], table->is_label[column] ? "the label" : "skipped");
        table->is_category[table->feature[column]] = true;
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

tr_status tr_csv_has_names(struct tr_csv_table *table, bool *names)
{
    struct tr_lines lines = tr_csv_rows(table);
    int32_t label = 0, count;
    *names = false;
    while (label < table->columns && !table->is_label[label]) label++;
    while (label < table->columns && tr_csv_next(&lines)) {
        leave_behind(table, &lines);
        const tr_status status = split(table, &lines, &count);
        if (status == TR_ENOMEM) return status;
        if (status != TR_OK || count != table->columns || tr_csv_is_missing(table->fields[label])) continue;
        *names = !is_number(table->fields[label]);
        if (!*names) break;
    }
    return TR_OK;
}

/* The next step for a field that should be a number. */
static const char *advice(const struct tr_csv_table *table, struct tr_csv_field field, bool is_label)
{
    bool letters = false, words = false;
    for (size_t i = 0; i < field.length; i++) {
        char c = field.at[i];
        letters |= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        words |= letters && c == ' ';
    }
    if (tr_csv_is_missing(field))
        return is_label ? "; give the label, or set missing: skip"
                        : "; set missing: skip, mean or constant for values that are not there";
    if (tr_csv_has_decimal_comma(field)) return "; numbers have a decimal point: write 3.14, not 3,14";
    if (words)
        return "; tables hold numbers: sentences with a class each are read by the format `text`, one a "
               "line, "
               "with a tab and the class behind";
    if (is_label && letters && table->options->label == TR_CSV_CLASS)
        return "; the labels of other rows are: correct it, or set label: name where all are names";
    return letters && !is_label
               ? "; write numbers, name the column in categories, or leave it out by skip_columns"
           : letters ? "; write numbers"
                     : "";
}

/* How messages call a column: by its name in the first line, or by its number. Only for failures, since it
   reads the first line anew, over the fields of the current one. Returns whether it has a name. */
static bool name_column(struct tr_csv_table *table, int32_t i, char out[SUBJECT_SIZE])
{
    struct tr_lines lines = table_lines(table);
    struct tr_csv_field name = {0};
    int32_t count;
    if (table->options->json)
        name = (struct tr_csv_field){table->json.name[i], strlen(table->json.name[i])};
    else if (table->header && tr_csv_next(&lines) && split(table, &lines, &count) == TR_OK && i < count)
        name = table->fields[i];
    if (name.length > 0)
        snprintf(out, SUBJECT_SIZE, "column \"%.*s\"", name.length < 60 ? (int)name.length : 60, name.at);
    else
        snprintf(out, SUBJECT_SIZE, "field %" PRId32, i);
    return name.length > 0;
}

static tr_status fail_field_with(struct tr_csv_table *table, const struct tr_lines *lines, int32_t i,
                                 const char *wrong, const char *next)
{
    struct tr_csv_field field = table->fields[i];
    int shown = field.length < 40 ? (int)field.length : 40;
    char subject[SUBJECT_SIZE];
    bool named = name_column(table, i, subject);
    return tr_lines_fail(lines, place_of(table, lines, field), "%s%s \"%.*s\" %s%s", subject,
                         named ? ":" : "", shown, field.at, wrong, next);
}

static tr_status fail_field(struct tr_csv_table *table, const struct tr_lines *lines, int32_t i,
                            const char *wrong)
{
    return fail_field_with(table, lines, i, wrong, advice(table, table->fields[i], table->is_label[i]));
}

/* Reads a label that is a name as its number; 0 while names are collected. */
static tr_status read_name(struct tr_csv_table *table, const struct tr_lines *lines, int32_t i)
{
    struct tr_csv_field field = table->fields[i];
    table->row[i] = 0;
    if (table->collects) {
        tr_status status = tr_class_names_add(&table->names, field.at, field.length);
        return status == TR_EFORMAT
                   ? tr_lines_fail(lines, place_of(table, lines, field), "%s", tr_error_message())
                   : status;
    }
    int32_t number = tr_class_names_find(&table->names, field.at, field.length);
    if (number >= 0) {
        table->row[i] = number;
        return TR_OK;
    }
    struct tr_text text = TR_TEXT_INIT;
    tr_class_names_add_unknown(&table->names, field.at, field.length, &text);
    tr_status status =
        text.failed ? TR_ENOMEM : tr_lines_fail(lines, place_of(table, lines, field), "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

/* Reads a feature that is a name as its number, -1 for an unknown name; 0 while names are collected. */
static tr_status read_category(struct tr_csv_table *table, const struct tr_lines *lines, int32_t i)
{
    struct tr_csv_field field = table->fields[i];
    struct tr_class_names *names = &table->categories.names[table->feature[i]];
    table->row[i] = 0;
    if (table->collects) {
        if (names->count == TR_CLASS_NAMES_MAX && tr_class_names_find(names, field.at, field.length) < 0) {
            char subject[SUBJECT_SIZE];
            name_column(table, i, subject);
            return tr_lines_fail(lines, place_of(table, lines, field),
                                 "%s has more than %d names, too many for categories; leave it out by "
                                 "skip_columns",
                                 subject, TR_CLASS_NAMES_MAX);
        }
        tr_status status = tr_class_names_add(names, field.at, field.length);
        return status == TR_EFORMAT
                   ? tr_lines_fail(lines, place_of(table, lines, field), "%s", tr_error_message())
                   : status;
    }
    table->row[i] = (double)tr_category_find(&table->categories, table->feature[i], field.at, field.length);
    bool may_be_unknown = !table->learned && table->options->unknown == TR_CSV_UNKNOWN_ZEROS;
    if (table->row[i] >= 0 || may_be_unknown) return TR_OK;
    return fail_field_with(table, lines, i, "is no name of the training data",
                           "; set unknown: zeros, or correct it");
}

/* Reads field `i` of the current line. */
static tr_status read_field(struct tr_csv_table *table, const struct tr_lines *lines, int32_t i)
{
    struct tr_csv_field field = table->fields[i];
    int missing = table->options->missing;
    bool gap_allowed = missing == TR_MISSING_SKIP || (missing != TR_MISSING_STOP && !table->is_label[i]);
    if (gap_allowed && tr_csv_is_missing(field)) {
        table->gaps = true;
        table->row[i] = NAN;
        return TR_OK;
    }
    if (table->is_label[i] && table->named)
        return tr_csv_is_missing(field) ? fail_field(table, lines, i, "is missing")
                                        : read_name(table, lines, i);
    if (table->is_category && !table->is_label[i] && table->is_category[table->feature[i]])
        return tr_csv_is_missing(field) ? fail_field(table, lines, i, "is missing")
                                        : read_category(table, lines, i);
    const char *wrong = tr_csv_number(field, &table->row[i]);
    if (!wrong && fabs(table->row[i]) > (double)FLT_MAX) wrong = "is too large for a float";
    if (wrong) return fail_field(table, lines, i, wrong);
    bool is_class = table->is_label[i] && table->options->label == TR_CSV_CLASS;
    return is_class ? check_class(table, lines, place_of(table, lines, field), table->row[i]) : TR_OK;
}

tr_status tr_csv_read(struct tr_csv_table *table, const struct tr_lines *lines)
{
    int32_t count;
    table->gaps = false;
    leave_behind(table, lines);
    TR_TRY(split(table, lines, &count));
    if (count != table->columns) {
        return tr_lines_fail(lines, lines->line, "%" PRId32 " columns; the first line has %" PRId32, count,
                             table->columns);
    }
    for (int32_t i = 0; i < count; i++)
        if (!table->is_skipped[i]) TR_TRY(read_field(table, lines, i));
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
    TR_TRY(options->spill ? tr_spill_lines(path, options->spill, &table->text)
                          : tr_load_lines(path, &table->file));
    TR_TRY(read_first_line(table));
    TR_TRY(find_labels(table));
    TR_TRY(find_skipped(table));
    table->json.skipped = table->is_skipped;
    TR_TRY(find_categories(table));
    if (options->json) table->header = false;
    return TR_OK;
}

void tr_csv_table_release(struct tr_csv_table *table)
{
    tr_free(table->row);
    tr_free(table->fields);
    tr_free(table->is_label);
    tr_free(table->is_skipped);
    tr_free(table->is_category);
    tr_free(table->feature);
    tr_categories_release(&table->categories);
    tr_json_row_release(&table->json);
    tr_free(table->file.data);
    tr_spilled_text_release(&table->text);
}
