/* `train.monitor`: the figure of evaluations that a run is judged by. */
#ifndef TR_JOB_MONITOR_H
#define TR_JOB_MONITOR_H

#include "job/job.h"

/* The name of the figure in an evaluation: "loss" for NULL, "f1" for "macro_f1", others as they are. */
const char *tr_monitor_figure(const char *monitor);
/* Whether more of it is better: of all but the loss and what goes with it. */
bool tr_monitor_rises(const char *monitor);
/* How much worse than nothing a value is, so that the lower is the better, whatever the figure. */
static inline double tr_monitor_cost(const char *monitor, double value)
{
    return tr_monitor_rises(monitor) ? -value : value;
}

/* Whether evaluations of any job have the figure; `what` begins the message. TR_EINVAL with those that there
   are, and the nearest of them. */
tr_status tr_monitor_check_name(const char *what, const char *monitor);
/* Whether evaluations of the job, whose network is there, have the figure. TR_EINVAL with file and line, the
   figures that they have, and the nearest of them. */
tr_status tr_monitor_check(const struct tr_job *job);

#endif
