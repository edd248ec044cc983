/* A table as text: its columns and its rows. Features are numbers, or names where options say so; a class may
 * be a name.
 *
 * Rows are walked with tr_csv_next(), any number of times; a row is good or bad the same way in every walk.
 */
#ifndef TR_DATA_CSV_TABLE_H
#define TR_DATA_CSV_TABLE_H

#include "data/files/spill.h"
#include "data/tables/categories.h"
#include "data/tables/csv_fields.h"
#include "data/tables/json_row.h"
#include "data/tables/missing.h"

#define TR_CSV_CLASSES_MAX (1 << 20)

enum tr_csv_label { TR_CSV_CLASS, TR_CSV_VALUE, TR_CSV_NONE, TR_CSV_NAME };
enum tr_csv_header { TR_CSV_HEADER_AUTO, TR_CSV_HEADER_YES, TR_CSV_HEADER_NO };

enum tr_csv_unknown { TR_CSV_UNKNOWN_ZEROS, TR_CSV_UNKNOWN_STOP };

struct tr_csv_options {
    char *path;
    int separator; /* a character; 0: guessed */
    int header;    /* enum tr_csv_header */
    int label;     /* enum tr_csv_label */
    struct tr_string_list label_columns, skip_columns, categories;
    int unknown; /* enum tr_csv_unknown */
    int32_t classes;
    int missing; /* enum tr_missing */
    double missing_value;
    bool standardize;
    int on_bad_record;
    double max_bad;
    /* No options of their own: lines are JSON objects, data/tables/json_row.h; and where what the table takes
       is laid out, data/files/spill.h, NULL: in memory. Borrowed. */
    bool json;
    const char *spill;
};

struct tr_csv_table {
    const char *path;
    const struct tr_csv_options *options;
    struct tr_load file;         /* the text, */
    struct tr_spilled_text text; /* which this one has where options->spill */
    size_t left;                 /* bytes of that which have been walked over and left */
    char separator;
    bool header;             /* the first line is no row */
    struct tr_json_row json; /* where lines are JSON */
    int32_t columns;
    bool *is_label;                  /* [columns] */
    bool *is_skipped;                /* [columns] */
    int32_t *feature;                /* [columns] its number among the features; -1: it is none */
    int32_t labels;                  /* label columns */
    int32_t features;                /* columns that are neither labels nor skipped */
    bool named;                      /* the label is a name; set by the caller, as are the next two */
    bool collects;                   /* names of the rows that are read are added to those known */
    bool learned;                    /* names of good rows are all known, since they are of this table */
    struct tr_class_names names;     /* owned by the caller */
    int32_t classes;                 /* class labels are below this; 0: not known yet. Set by the caller */
    bool *is_category;               /* [features]: of names */
    struct tr_categories categories; /* [features] known or collected, as `names` are */
    struct tr_csv_field *fields;     /* [columns], of the current line */
    double *row; /* [columns], of the current line; NaN: a feature that is missing; of names their numbers */
    bool gaps;   /* the current line misses a feature, or, where such rows are skipped, its label */
};

/* Loads the file and settles its columns. `path` and `options` are borrowed while the table is in use.
   Release with tr_csv_table_release(), also after a failure. */
tr_status tr_csv_table_open(const char *path, const struct tr_csv_options *options,
                            struct tr_csv_table *table);
void tr_csv_table_release(struct tr_csv_table *table);

/* The column that `name` means, which is its name or its number, before the first row is read. TR_EINVAL
   where there is none; `what` is its use, for the message. */
tr_status tr_csv_find_column(const struct tr_csv_table *table, const char *what, const char *name,
                             int32_t *column);

/* The failure of a table without a line: TR_EFORMAT. */
tr_status tr_csv_empty(const char *path);
/* Before the first row. */
struct tr_lines tr_csv_rows(const struct tr_csv_table *table);
/* Moves to the next row; empty lines are none. False at the end. */
bool tr_csv_next(struct tr_lines *lines);
/* Whether the labels are names: those of all rows are no numbers. For tables of classes. */
bool tr_csv_has_names(struct tr_csv_table *table);
/* Reads the current row into table->row and table->gaps. TR_EFORMAT with line and column when it is bad. */
tr_status tr_csv_read(struct tr_csv_table *table, const struct tr_lines *lines);

#endif
