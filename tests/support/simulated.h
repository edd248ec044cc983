/* Ranks on a simulated cluster, for tests: they take turns in a time of their own, so that hours pass at once
 * and every run is the same.
 */
#ifndef TESTS_SUPPORT_SIMULATED_H
#define TESTS_SUPPORT_SIMULATED_H

#include "plan/world/transport.h"

#define SIMULATED_MOST 16

/* The run under way; a rank may take its comm away (NULL) to destroy it by itself. */
extern struct simulated {
    tr_world *world;
    tr_sim *sim;
    tr_comm *comm[SIMULATED_MOST];
} simulated;

/* What a rank does; a text says what went wrong (comm/check.h), NULL: nothing. */
typedef const char *(*simulated_function)(tr_comm *comm, int rank);

/* Runs it on all ranks and destroys their communicators; fails the test with what the first says. The
   listener may be NULL. */
void simulated_run(const struct tr_cluster *cluster, int ranks, const struct tr_sim_listener *listener,
                   simulated_function function);

/* ---- for the rank that runs ---- */

/* Lets time pass to this second, without a look at its messages. */
void simulated_rest_until(double time);
double simulated_now(void);

#endif
