/* The records of a file of texts: lines `text TAB label`, rows of a table with quoted fields (RFC 4180), or
 * lines that are JSON objects (data/tables/json_row.h).
 */
#ifndef TR_DATA_TEXT_RECORDS_H
#define TR_DATA_TEXT_RECORDS_H

#include "base/text/text.h"
#include "data/files/lines.h"
#include "data/tables/json_row.h"

enum tr_text_layout { TR_TEXT_LINES, TR_TEXT_TABLE, TR_TEXT_JSON };

/* The layout of a file; members after `labels` are those of tables. */
struct tr_text_form {
    int layout; /* enum tr_text_layout; objects have columns as tables do, by name */
    bool labels;
    int separator; /* a character */
    bool header;
    struct tr_string_list text_columns; /* by name or number, joined by a blank. Empty: the first column */
    char *label_column;                 /* NULL: the last column */
};

/* A record: its text and its label, "" where there are none. Borrowed until the next one is read. */
struct tr_text_record {
    const char *text, *label;
    size_t length, label_length;
    const char *place; /* position of the label in the current line, for messages */
};

/* A walk over the records of a file. */
struct tr_text_records {
    struct tr_lines lines; /* the current line; of a record of several lines the last one */
    const struct tr_text_form *form;
    struct tr_text made; /* of a table: the fields of the record one after another, each with a NUL */
    size_t *field;       /* [columns + 1] beginnings of the fields in it */
    int32_t columns, label;
    int32_t text_count;
    int32_t *text; /* [text_count] */
    struct tr_text joined;
    struct tr_json_row row; /* of objects, and their fields in the current line [columns] */
    struct tr_csv_field *json;
};

/* Starts before the first record; for a table also reads its first row and determines its columns. All
   borrowed while records are read. Release with tr_text_records_release(), also after a failure.
   TR_EFORMAT. */
tr_status tr_text_records_begin(const struct tr_text_form *form, const char *path, const char *text,
                                size_t size, struct tr_text_records *records);
void tr_text_records_release(struct tr_text_records *records);

/* Reads the next record. *more becomes false after the last. TR_EFORMAT, with file, line and column, for a
   bad record; the walk then continues after it. Each walk finds the same. TR_ENOMEM. */
tr_status tr_text_records_next(struct tr_text_records *records, bool *more, struct tr_text_record *record);

#endif
