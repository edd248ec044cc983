/* A table of numbers as text: its columns and its rows.
 *
 * Rows are walked with tr_csv_next(), any number of times; a row is good or bad the same way in every walk.
 */
#ifndef TR_DATA_CSV_TABLE_H
#define TR_DATA_CSV_TABLE_H

#include "data/csv_fields.h"

#define TR_CSV_CLASSES_MAX (1 << 20)

enum tr_csv_label { TR_CSV_CLASS, TR_CSV_VALUE, TR_CSV_NONE };
enum tr_csv_header { TR_CSV_HEADER_AUTO, TR_CSV_HEADER_YES, TR_CSV_HEADER_NO };

struct tr_csv_options {
    char *path;
    int separator; /* a character; 0: guessed */
    int header;    /* enum tr_csv_header */
    int label;     /* enum tr_csv_label */
    struct tr_string_list label_columns;
    int32_t classes;
    bool standardize;
    int on_bad_record;
    double max_bad;
};

struct tr_csv_table {
    const char *path;
    const struct tr_csv_options *options;
    struct tr_load file;
    char separator;
    bool header;
    int32_t columns;
    bool *is_label;              /* [columns] */
    int32_t labels;              /* label columns */
    int32_t classes;             /* class labels are below this; 0: not known yet. Set by the caller */
    struct tr_csv_field *fields; /* [columns], of the current line */
    double *row;                 /* [columns], of the current line */
};

/* Loads the file and settles its columns. `path` and `options` are borrowed while the table is in use.
   Release with tr_csv_table_release(), also after a failure. */
tr_status tr_csv_table_open(const char *path, const struct tr_csv_options *options,
                            struct tr_csv_table *table);
void tr_csv_table_release(struct tr_csv_table *table);

/* Before the first row. */
struct tr_lines tr_csv_rows(const struct tr_csv_table *table);
/* Moves to the next row; empty lines are none. False at the end. */
bool tr_csv_next(struct tr_lines *lines);
/* Reads the current row into table->row. TR_EFORMAT with line and column when it is bad. */
tr_status tr_csv_read(struct tr_csv_table *table, const struct tr_lines *lines);

#endif
