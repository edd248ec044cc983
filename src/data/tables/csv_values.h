/* One example as a line of numbers, in the form of a table's rows. */
#ifndef TR_DATA_CSV_VALUES_H
#define TR_DATA_CSV_VALUES_H

#include "data/tables/csv_fields.h"

/* Knows the columns of names. */
struct tr_csv_namer {
    int32_t (*names)(const void *user, int32_t column); /* how many names the column has; 0: it holds
                                                           numbers */
    /* The number of a name. */
    tr_status (*find)(const void *user, int32_t column, const char *name, float *value);
    const void *user;
};

/* Reads the current line, which must have `count` fields: numbers; names where `namer` knows them (NULL:
   nowhere); or words for "no value", which become NaN. Errors of the namer, and TR_EFORMAT with line and
   column; fields count from 0, as columns do. */
tr_status tr_csv_values(const struct tr_lines *lines, char separator, int32_t count,
                        const struct tr_csv_namer *namer, float *values);

/* Whether the current line is a header: no field is a number or means "no value". Fields in columns of
   names are not looked at; a line with no others is an example. */
bool tr_csv_is_names(const struct tr_lines *lines, char separator, const struct tr_csv_namer *namer);

#endif
