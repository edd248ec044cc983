/* How to repeat a run: its command line, and everything that determines its hash. */
#ifndef TR_REPORT_REPEAT_H
#define TR_REPORT_REPEAT_H

#include "report/run.h"

/* Appends the facts of a run below a heading; NULL: none. */
void tr_report_repetition(struct tr_text *html, const struct tr_run *run, const char *heading);

#endif
