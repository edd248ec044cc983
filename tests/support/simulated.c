#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/simulated.h"

#include <stdio.h>

struct simulated simulated;

static simulated_function the_function;
static char wrong[2000];

static void rank_main(void *user, int rank)
{
    (void)user;
    const char *what = the_function(simulated.comm[rank], rank);
    if (what && !wrong[0]) snprintf(wrong, sizeof wrong, "rank %d: %s", rank, what);
    tr_comm_destroy(&simulated.comm[rank]);
}

void simulated_run(const struct tr_cluster *cluster, int ranks, const struct tr_sim_listener *listener,
                   simulated_function function)
{
    the_function = function;
    wrong[0] = 0;
    assert_true(ranks <= SIMULATED_MOST);
    assert_int_equal(tr_world_create(ranks, &simulated.world), TR_OK);
    assert_int_equal(tr_sim_create(simulated.world, cluster, ranks, listener, simulated.comm, &simulated.sim),
                     TR_OK);
    assert_int_equal(tr_world_run(simulated.world, rank_main, NULL), TR_OK);
    tr_sim_destroy(&simulated.sim);
    tr_world_destroy(&simulated.world);
    if (wrong[0]) fail_msg("%s", wrong);
}

void simulated_rest_until(double time)
{
    tr_world_rest(simulated.world, time - tr_world_now(simulated.world));
}

double simulated_now(void)
{
    return tr_world_now(simulated.world);
}
