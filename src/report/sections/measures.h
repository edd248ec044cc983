/* What the last evaluations of runs measured beside loss and accuracy. */
#ifndef TR_REPORT_MEASURES_H
#define TR_REPORT_MEASURES_H

#include "report/run.h"

/* Appends a table of the runs of one job by their metrics, and one of the first run's outputs; nothing where
   the first run measured nothing. `label` [count] are what the runs are called; `job` (NULL: there is no
   other) is a heading of its own. The heading of the section comes before the first, which *begun tells. */
void tr_report_measures(struct tr_text *html, struct tr_run *const *run, char *const *label, int count,
                        const char *job, bool *begun);

#endif
