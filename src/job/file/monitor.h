/* `train.monitor`: the figure of evaluations that a run is judged by. */
#ifndef TR_JOB_MONITOR_H
#define TR_JOB_MONITOR_H

#include "job/job.h"

/* The name of the figure in an evaluation: "loss" for NULL, "f1" for "macro_f1", others unchanged. */
const char *tr_monitor_figure(const char *monitor);
/* Whether more of it is better: for all but the loss and figures derived from it. */
bool tr_monitor_rises(const char *monitor);
/* A value as a cost, of which less is better, whatever the figure. */
static inline double tr_monitor_cost(const char *monitor, double value)
{
    return tr_monitor_rises(monitor) ? -value : value;
}

/* Whether evaluations of any job can have the figure; `what` begins the message. TR_EINVAL with all
   figures, and the nearest one. */
tr_status tr_monitor_check_name(const char *what, const char *monitor);
/* Whether evaluations of the job, whose network is built, have the figure. TR_EINVAL with file and line,
   their figures, and the nearest one. */
tr_status tr_monitor_check(const struct tr_job *job);

#endif
