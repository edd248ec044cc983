/* The synchronous parameter server: all-reduce in which only the last ranks update, with all shards, and
 * the others compute all microbatches.
 */
#include "strategy/parameter_server/parameter_server.h"

#include "base/fail.h"
#include "base/threads/team.h"

static struct ps_synchronous_server *self_of(tr_strategy *strategy)
{
    return (struct ps_synchronous_server *)strategy;
}

/* A server of synchronous steps works while the workers wait, so it may use their cores, too: those of its
   host, shared with the other servers there. */
static tr_status make_device(tr_strategy *strategy)
{
    struct ps_synchronous_server *self = self_of(strategy);
    int own = strategy->device->threads, workers = 0, servers = 0;
    for (int i = 0; i < tr_comm_local_size(strategy->comm); i++) {
        if (tr_comm_local(strategy->comm, i) < strategy->size - strategy->servers)
            workers++;
        else
            servers++;
    }
    int threads = own * workers / servers;
    if (threads > TR_TEAM_MAX) threads = TR_TEAM_MAX;
    if (threads <= own || !strategy->device->class->host_memory) return TR_OK;
    TR_TRY(tr_device_create_like(strategy->device, threads, &self->device));
    if (strategy->holder == strategy->device) strategy->holder = self->device;
    strategy->device = self->device;
    return TR_OK;
}

tr_status ps_synchronous_create(tr_strategy *strategy)
{
    TR_TRY(tr_options_defaults(tr_strategy_all_reduce.options, tr_strategy_all_reduce.option_count,
                               &self_of(strategy)->work.options));
    if (strategy->rank >= strategy->size - strategy->servers) TR_TRY(make_device(strategy));
    return all_reduce_create(strategy);
}

void ps_synchronous_destroy(tr_strategy *strategy)
{
    struct ps_synchronous_server *self = self_of(strategy);
    all_reduce_destroy(strategy);
    tr_device_destroy(&self->device);
}
