/* A line of a table taken apart into numbers. */
#ifndef TR_DATA_CSV_FIELDS_H
#define TR_DATA_CSV_FIELDS_H

#include "data/files/lines.h"

/* A field, in the line, without its quotes and the blanks around it. */
struct tr_csv_field {
    const char *at;
    size_t length;
};

/* The separator that the first line suggests: tab, semicolon or comma, whichever comes first in it (commas
   between digits count last, since they may be decimal ones); a blank where there is none of them. */
char tr_csv_guess(const char *line, size_t length);
/* Whether a field is digits, a comma and digits: a number as some write it. */
bool tr_csv_has_decimal_comma(struct tr_csv_field field);

/* Splits the current line. Quotes may enclose a whole field; two quotes inside do not stand for one. Blanks
   around a field do not count; where the separator is a blank, any number of them separate. *count becomes
   the number of fields, of which the first `room` are written. TR_EFORMAT for an open quote or text after
   one. */
tr_status tr_csv_split(const struct tr_lines *lines, char separator, struct tr_csv_field *fields,
                       int32_t room, int32_t *count);

/* Whether a field says that there is no value: it is empty, ?, NA, N/A, NaN, null or None, in capitals or
 * not. */
bool tr_csv_is_missing(struct tr_csv_field field);

/* Reads a number that fills the field. Returns NULL, or what is wrong as the end of a sentence. */
const char *tr_csv_number(struct tr_csv_field field, double *number);

/* Fails for a column that is not there, TR_EINVAL: says the nearest name of those in the `count` fields of
   the first line, which is no header unless `header`. `what` is the use of the column, for the message. */
tr_status tr_csv_no_column(const char *path, const char *what, const char *column,
                           const struct tr_csv_field *fields, int32_t count, bool header);

#endif
