/* Parts of communicators, as a scenario. */
#ifndef TESTS_COMM_SCENARIO_PARTS_H
#define TESTS_COMM_SCENARIO_PARTS_H

#include "comm/comm.h"

const char *scenario_parts(tr_comm *comm);

#endif
