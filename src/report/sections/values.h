/* The predictions of a network for values, on the test data: predicted against true. */
#ifndef TR_REPORT_VALUES_H
#define TR_REPORT_VALUES_H

#include "base/text/text.h"
#include "trireme/predict.h"

/* Appends a picture for each of the first outputs. All are borrowed for the call; the source, called `set`
   in the text, has values. Errors as tr_predictor_source(). */
tr_status tr_report_values(struct tr_text *html, tr_predictor *predictor, const char *set,
                           const tr_source *source);

#endif
