/* Tables of numbers as text: comma, tab, semicolon or blank separated. */
#ifndef TR_DATA_CSV_H
#define TR_DATA_CSV_H

#include "data/source.h"

/* {csv: {path: PATH, ...}}. State: scaling.txt (kind "scaling", see data/state.h), one line per feature
   column,
   `<mean> <deviation>`: a feature is (field - mean) / deviation. */
extern const struct tr_source_format tr_source_format_csv;

#endif
