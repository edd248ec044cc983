/* A run's records over its steps, as charts. */
#ifndef TR_REPORT_CURVES_H
#define TR_REPORT_CURVES_H

#include "report/run.h"

/* Appends the charts of `count` runs of one job, called `label` [count]; the first has colour `colour`, the
   next one the next. TR_ENOMEM. */
tr_status tr_report_curves(struct tr_text *html, struct tr_run *const *run, char *const *label, int count,
                           int colour);

#endif
