/* A table as text: its columns and rows. Features are numbers, or names where options say so; a class may
 * be a name.
 *
 * Rows are walked with tr_csv_next(), any number of times; each walk finds the same rows good or bad.
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
    /* Not from the options: lines are JSON objects (data/tables/json_row.h); directory for unpacked
       contents (data/files/spill.h), NULL: in memory. Borrowed. */
    bool json;
    const char *spill;
};

struct tr_csv_table {
    const char *path;
    const struct tr_csv_options *options;
    struct tr_load file;         /* the text, */
    struct tr_spilled_text text; /* which this owns where options->spill */
    size_t left;                 /* bytes of it that were walked over and released */
    char separator;
    bool header;             /* the first line is a header */
    struct tr_json_row json; /* where lines are JSON */
    int32_t columns;
    bool *is_label;                  /* [columns] */
    bool *is_skipped;                /* [columns] */
    int32_t *feature;                /* [columns] number among the features; -1: no feature */
    int32_t labels;                  /* label columns */
    int32_t features;                /* columns that are neither labels nor skipped */
    bool named;                      /* the label is a name; this and the next two are set by the caller */
    bool collects;                   /* unknown names in rows are added to the known ones */
    bool learned;                    /* the names are those of this table, so no row has an unknown one */
    struct tr_class_names names;     /* owned by the caller */
    int32_t classes;                 /* class labels are below this; 0: not known. Set by the caller */
    bool *is_category;               /* [features]: holds names */
    struct tr_categories categories; /* [features] names, known or collected as `names` are */
    struct tr_csv_field *fields;     /* [columns], of the current line */
    double *row; /* [columns], of the current line; NaN: missing; for names their numbers */
    bool gaps;   /* the current line lacks a feature or, where such rows are skipped, its label */
};

/* Loads the file and settles its columns. `path` and `options` are borrowed while the table is in use.
   Release with tr_csv_table_release(), also after a failure. */
tr_status tr_csv_table_open(const char *path, const struct tr_csv_options *options,
                            struct tr_csv_table *table);
void tr_csv_table_release(struct tr_csv_table *table);

/* Finds the column that `name` means, a name or a number; call it before the first row is read. TR_EINVAL
   where there is none; `what` is its use, for the message. */
tr_status tr_csv_find_column(const struct tr_csv_table *table, const char *what, const char *name,
                             int32_t *column);

/* The failure of a table without a line: TR_EFORMAT. */
tr_status tr_csv_empty(const char *path);
/* The position before the first row. */
struct tr_lines tr_csv_rows(const struct tr_csv_table *table);
/* Moves to the next row, over empty lines. False at the end. */
bool tr_csv_next(struct tr_lines *lines);
/* Whether the labels are names: no row has a number as its label. For tables of classes. TR_ENOMEM. */
tr_status tr_csv_has_names(struct tr_csv_table *table, bool *names);
/* Reads the current row into table->row and table->gaps. TR_EFORMAT with line and column when it is bad. */
tr_status tr_csv_read(struct tr_csv_table *table, const struct tr_lines *lines);

#endif
