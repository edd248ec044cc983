/* Tables of numbers as text: comma, tab, semicolon or blank separated. */
#ifndef TR_DATA_CSV_H
#define TR_DATA_CSV_H

#include "data/source.h"

/* {csv: {path: PATH, ...}}. State: scaling.txt, see data/tables/scaling.h. */
extern const struct tr_source_format tr_source_format_csv;
/* {json: {path: PATH, ...}}: the same, from lines that are JSON objects. Its options are a struct
 * tr_csv_options, too.
 */
extern const struct tr_source_format tr_source_format_json;

#endif
