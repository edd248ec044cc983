/* Sums along the tree, as scenarios. */
#ifndef TESTS_COMM_SCENARIO_SUMS_H
#define TESTS_COMM_SCENARIO_SUMS_H

#include "comm/comm.h"

#define RANKS 8 /* most that scenarios are made for */

const char *scenario_sums(tr_comm *comm);
const char *scenario_sums_in_window(tr_comm *comm);
const char *scenario_all_reduce(tr_comm *comm);
const char *scenario_buckets(tr_comm *comm);
const char *scenario_bytes(tr_comm *comm);
const char *scenario_combine(tr_comm *comm);
const char *scenario_apply(tr_comm *comm);
const char *scenario_large(tr_comm *comm);

#endif
