/* The processes of a run. */
#ifndef TR_REPORT_PROCESSES_H
#define TR_REPORT_PROCESSES_H

#include "report/run.h"

/* Append a figure for a run called `label`: a histogram of the updates that its gradients missed, and a
   table of its ranks. */
void tr_report_staleness(struct tr_text *html, const struct tr_run *run, const char *label);
void tr_report_ranks(struct tr_text *html, const struct tr_run *run, const char *label);

#endif
