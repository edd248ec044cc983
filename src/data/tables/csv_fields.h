/* Splits a line of a table into fields, and reads their numbers. */
#ifndef TR_DATA_CSV_FIELDS_H
#define TR_DATA_CSV_FIELDS_H

#include "data/files/lines.h"

/* A field of the line, without its quotes and the blanks around it. */
struct tr_csv_field {
    const char *at;
    size_t length;
};

/* Guesses the separator from the first line: the first of tab, semicolon and comma in it. Commas between
   digits count last, since they may be decimal commas. Without any of them, a blank. */
char tr_csv_guess(const char *line, size_t length);
/* Whether a field is digits, a comma and digits: a number with a decimal comma. */
bool tr_csv_has_decimal_comma(struct tr_csv_field field);

/* Splits the current line. Quotes may enclose a whole field; two quotes inside do not end it, and stay two.
   Blanks around a field are ignored; where the separator is a blank, several blanks count as one. *count
   becomes the number of fields, of which the first `room` are written. TR_EFORMAT for an open quote or
   text after one. */
tr_status tr_csv_split(const struct tr_lines *lines, char separator, struct tr_csv_field *fields,
                       int32_t room, int32_t *count);

/* Whether a field means "no value": empty, ?, NA, N/A, NaN, null or None, in any case. */
bool tr_csv_is_missing(struct tr_csv_field field);

/* Reads a number that takes the whole field. Returns NULL, or the fault as the end of a sentence. */
const char *tr_csv_number(struct tr_csv_field field, double *number);

/* Fails for a missing column, TR_EINVAL, and gives the nearest name among the `count` fields of the first
   line; without `header` that line is no header. `what` is the use of the column, for the message. */
tr_status tr_csv_no_column(const char *path, const char *what, const char *column,
                           const struct tr_csv_field *fields, int32_t count, bool header);

#endif
