/* The work of the processes of a run, for people: waiting times, moved bytes, staleness of gradients. */
#ifndef CLI_STATISTICS_H
#define CLI_STATISTICS_H

#include "base/text/text.h"

#include "trireme/train.h"

/* Figures over all processes. */
struct cli_statistics {
    double computing, waiting; /* fraction of the processes' time, 0..1 */
    double sent, shared;       /* bytes per step, of all processes */
    int slowest;               /* the process that the others waited for, -1: none stands out */
    double slowest_seconds, others_seconds, others_waited; /* its computing, theirs, their waiting: means */
    double mean_staleness;
    int most_staleness;  /* the highest bin that has gradients */
    bool more_staleness; /* and that bin also stands for greater values */
};
/* `seconds`: the duration of the run. */
struct cli_statistics cli_statistics_of(const struct tr_train_statistics *statistics, double seconds);

/* Appends a few lines "label  text"; none for a single process. */
void cli_statistics_text(const struct tr_train_statistics *statistics, double seconds, struct tr_text *text);

#endif
