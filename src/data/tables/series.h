/* Windows over time series: rows of a table in the order of time, from one series or several. */
#ifndef TR_DATA_SERIES_H
#define TR_DATA_SERIES_H

#include "data/source.h"

/* {series: {path: PATH, window: ROWS, ...}}. State: scaling.txt, see data/tables/scaling.h. */
extern const struct tr_source_format tr_source_format_series;

#endif
