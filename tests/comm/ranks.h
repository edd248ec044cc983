/* Ranks as threads. */
#ifndef TESTS_COMM_RANKS_H
#define TESTS_COMM_RANKS_H

#include "comm/scenarios/scenarios.h"

#define RANKS_MOST 8

/* Runs a scenario on `size` threads with a communicator each, and destroys these. `host` as
   tr_comm_thread_create(). Fails the test with what any rank says. */
void ranks_run(int size, const int *host, const struct tr_comm_settings *settings, scenario_function run);
/* The same with another way of making communicators than tr_comm_thread_create(). */
typedef tr_status (*ranks_maker)(int size, const int *host, const struct tr_comm_settings *settings,
                                 tr_comm **out);
void ranks_run_made(ranks_maker make, int size, const int *host, const struct tr_comm_settings *settings,
                    scenario_function run);

#endif
