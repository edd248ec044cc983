/* Metrics of the last evaluations of runs, besides loss and accuracy. */
#ifndef TR_REPORT_MEASURES_H
#define TR_REPORT_MEASURES_H

#include "report/run.h"

/* Appends a table of the runs of one job by their metrics, and one of the first run's outputs; nothing
   where the first run has no metrics. `label` [count] are the runs' names; `job` (NULL: there is only one)
   is a separate heading. The section's heading comes before the first table; *begun says whether it was
   written. */
void tr_report_measures(struct tr_text *html, struct tr_run *const *run, char *const *label, int count,
                        const char *job, bool *begun);

#endif
