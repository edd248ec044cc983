/* Ranks as threads. */
#ifndef TESTS_COMM_RANKS_H
#define TESTS_COMM_RANKS_H

#include "scenarios.h"

#define RANKS_MOST 8

/* Runs a scenario on `size` threads with a communicator each, and destroys these. `host` as
   tr_comm_thread_create(). Fails the test with what any rank says. */
void ranks_run(int size, const int *host, const struct tr_comm_settings *settings, scenario_function run);

#endif
