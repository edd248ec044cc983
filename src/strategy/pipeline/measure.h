/* Measured costs of parts of the network, used to make stages equally slow. */
#ifndef TR_STRATEGY_PIPELINE_MEASURE_H
#define TR_STRATEGY_PIPELINE_MEASURE_H

#include "strategy/class.h"

/* Seconds that a range of layers takes. */
struct pipeline_cost {
    double flow;   /* of a unit forward and back */
    double add;    /* of the sum of two gradients */
    double update; /* of all parameters */
};

/* Measures the time of layers [bound[k], bound[k + 1]) for each of `count` ranges, whose ends are legal
   cuts, with units of `per_unit` microbatches. Computes on the first rows of the data with initial
   parameters, takes memory for one range at a time, and changes nothing; the strategy need not have
   variables yet. Local. */
tr_status pipeline_measure(tr_strategy *strategy, int64_t per_unit, const int *bound, int count,
                           struct pipeline_cost *cost);

#endif
