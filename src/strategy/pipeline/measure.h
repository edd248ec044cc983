/* What parts of the network cost, measured: so that stages can be made equally slow. */
#ifndef TR_STRATEGY_PIPELINE_MEASURE_H
#define TR_STRATEGY_PIPELINE_MEASURE_H

#include "strategy/class.h"

/* Takes the time of layers [bound[k], bound[k + 1]) for each of `count` ranges, whose ends are legal cuts:
   seconds of a step in which `replicas` ranks share the microbatches, forward, backward, addition and update.
   Computes on the first rows of the data with initial parameters, takes memory for one range at a time, and
   changes nothing; the strategy need have no variables yet. Local. */
tr_status pipeline_measure(tr_strategy *strategy, int replicas, const int *bound, int count, double *cost);

#endif
