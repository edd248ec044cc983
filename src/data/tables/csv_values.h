/* One example as a line of numbers, in the form of the rows of a table. */
#ifndef TR_DATA_CSV_VALUES_H
#define TR_DATA_CSV_VALUES_H

#include "data/tables/csv_fields.h"

/* Who knows columns of names. */
struct tr_csv_namer {
    int32_t (*names)(const void *user, int32_t column); /* how many names it has; 0: it is of numbers */
    /* The number that stands for one. */
    tr_status (*find)(const void *user, int32_t column, const char *name, float *value);
    const void *user;
};

/* Reads the current line, which must have `count` fields: numbers, names where `namer` knows them (NULL:
   nowhere), or what says that there is none, which becomes NaN. What the namer says, and TR_EFORMAT with line
   and column; fields count from 0, as columns do. */
tr_status tr_csv_values(const struct tr_lines *lines, char separator, int32_t count,
                        const struct tr_csv_namer *namer, float *values);

/* Whether no field of the current line is a number or says that there is none: names of columns, then.
   Columns of names do not count, and a line of nothing else is an example. */
bool tr_csv_is_names(const struct tr_lines *lines, char separator, const struct tr_csv_namer *namer);

#endif
