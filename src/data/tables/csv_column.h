/* One column of a table, as texts. */
#ifndef TR_DATA_CSV_COLUMN_H
#define TR_DATA_CSV_COLUMN_H

#include "base/files/ops.h"

/* The fields of a column of a table, plain or gzip, row by row: `column` is its name in the first line, or,
   where the first line is a row, its number from 0. The separator is what the first line suggests
   (data/tables/csv_fields.h). TR_EINVAL where there is no such column, with the nearest name; TR_EFORMAT with
   line and column for a row of another number of fields, and for a field that is empty. Returned, free with
   tr_file_names_free(), also after a failure. */
tr_status tr_csv_column(const char *path, const char *column, struct tr_file_names *out);

#endif
