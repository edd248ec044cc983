/* What every transport must do, as functions that all ranks of a communicator run.
 *
 * Ranks are threads or processes, so a scenario does not assert but returns what is wrong, or NULL.
 */
#ifndef TESTS_COMM_SCENARIOS_H
#define TESTS_COMM_SCENARIOS_H

#include "comm/comm.h"

typedef const char *(*scenario_function)(tr_comm *comm);

struct scenario {
    const char *name;
    scenario_function run;
};

/* Ends with a NULL name. */
extern const struct scenario scenarios[];

/* The elements of tests of sums: what leaf `leaf` brings at element `element`. Sums of these round, so that
 * their order shows. */
float scenario_leaf(int64_t leaf, int64_t element);
/* The sum over all leaves by the definition of the tree. */
float scenario_sum(int64_t leaves, int64_t element);

#endif
