/* A trained network's predictions on the test data: the confusion matrix, and wrong predictions. */
#ifndef TR_REPORT_EXAMPLES_H
#define TR_REPORT_EXAMPLES_H

#include "base/text/text.h"

/* Appends a section for the newest checkpoint in `directory`, on the test data of its job, or the
   validation data where it has no others. Where the network, its data or the checkpoint do not allow it,
   the section says why; only lack of memory is an error. */
tr_status tr_report_examples(struct tr_text *html, const char *directory);

#endif
