/* One column of a table, as texts. */
#ifndef TR_DATA_CSV_COLUMN_H
#define TR_DATA_CSV_COLUMN_H

#include "base/files/ops.h"

/* Reads the fields of one column of a table, plain or gzip. `column` is its name in the first line or,
   where the first line is a row, its number from 0. The separator is guessed from the first line
   (data/tables/csv_fields.h). TR_EINVAL, with the nearest name, where there is no such column. TR_EFORMAT,
   with line and column, for a row with another number of fields, and for an empty field. Returned, free
   with tr_file_names_free(), also after a failure. */
tr_status tr_csv_column(const char *path, const char *column, struct tr_file_names *out);

#endif
