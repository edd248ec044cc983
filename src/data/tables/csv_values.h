/* One example as a line of numbers, in the form of the rows of a table. */
#ifndef TR_DATA_CSV_VALUES_H
#define TR_DATA_CSV_VALUES_H

#include "data/tables/csv_fields.h"

/* Reads the current line, which must have `count` fields: numbers, or what says that there is none, which
   becomes NaN. TR_EFORMAT with line and column; fields count from 0, as columns do. */
tr_status tr_csv_values(const struct tr_lines *lines, char separator, int32_t count, float *values);

/* Whether no field of the current line is a number or says that there is none: names of columns, then. */
bool tr_csv_is_names(const struct tr_lines *lines, char separator);

#endif
