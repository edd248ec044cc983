/* Lines that are JSON objects, as the fields of a table's row.
 *
 * The members of the first line name the columns. Members of nested objects are columns called "a.b",
 * elements of an array "a.0", "a.1" and so on. A later line may lack members, which count as missing, as
 * null does; it must not have others. Texts become fields unchanged; true and false become 1 and 0.
 */
#ifndef TR_DATA_JSON_ROW_H
#define TR_DATA_JSON_ROW_H

#include "data/tables/csv_fields.h"

/* Begins as {0}. */
struct tr_json_row {
    char **name; /* [columns] */
    int32_t columns, room;
    char *text; /* of the current line's fields */
    /* Texts may have line feeds: all, or those of the columns [columns] that are skipped (NULL: of none).
       Else they are names. Set by the owner after the beginning. */
    bool line_feeds;
    const bool *skipped;
};

/* Learns the columns from the current line. TR_EFORMAT with line, TR_ENOMEM. Release also after a failure. */
tr_status tr_json_row_begin(struct tr_json_row *row, const struct tr_lines *lines);
/* The fields [columns] of the current line, borrowed from the row until the next line is read. Likewise. */
tr_status tr_json_row_read(struct tr_json_row *row, const struct tr_lines *lines,
                           struct tr_csv_field *fields);
void tr_json_row_release(struct tr_json_row *row);

#endif
