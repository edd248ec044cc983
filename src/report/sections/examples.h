/* What a trained network does with the test data: the confusion matrix, and examples that it got wrong. */
#ifndef TR_REPORT_EXAMPLES_H
#define TR_REPORT_EXAMPLES_H

#include "base/text/text.h"

/* Appends a section for the newest checkpoint in `directory`, on the test data of its job, or the validation
   data where it has no others. A section that says why there is none is
   appended where the network, its data or the checkpoint do not allow it; only lack of memory is an error. */
tr_status tr_report_examples(struct tr_text *html, const char *directory);

#endif
