/* What the last evaluations of runs measured beside loss and accuracy. */
#ifndef TR_REPORT_MEASURES_H
#define TR_REPORT_MEASURES_H

#include "report/run.h"

/* Appends a section with a table of the runs by their metrics, and one of the first run's outputs; nothing
   where the first run measured nothing. `label` [count] are what the runs are called. */
void tr_report_measures(struct tr_text *html, struct tr_run *const *run, char *const *label, int count);

#endif
