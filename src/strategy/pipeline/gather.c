/* Gathering the stages' data on the root: pieces that it saves and hashes, or whole arenas.
 *
 * Everything goes only to the root, in messages that sender and receiver handle in the same order: that of
 * the ranks.
 */
#include "strategy/pipeline/pipeline.h"

#include "base/fail.h"

#include <string.h>

/* Sends floats from one rank to the root, called by these two. */
static tr_status pass_on(tr_strategy *strategy, int rank, float *floats, int64_t count, const char *name)
{
    tr_comm *comm = strategy->comm;
    size_t bytes = (size_t)count * sizeof *floats;
    tr_ticket *ticket = NULL;
    tr_status status = strategy->rank == 0
                           ? tr_comm_receive(comm, rank, STAGE_TAG_GATHER, floats, bytes, name, &ticket)
                           : tr_comm_send_numbers(comm, 0, STAGE_TAG_GATHER, floats, bytes, name, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

/* The floats of an arena that are up to date on a rank, [*begin, *end); for the parameters, which all
   replicas of a stage have, the first replica is used. */
static void owned_range(const struct pipeline *self, int rank, enum tr_arena arena, int64_t *begin,
                        int64_t *end)
{
    bool parameters = arena == TR_ARENA_PARAMETERS, first = pipeline_replica_of(self, rank) == 0;
    *begin = self->shard[rank];
    *end = self->shard[parameters ? (first ? rank + self->replicas : rank) : rank + 1];
}

/* Where the replicas of this stage share the memory of its parameters, devices may be copying from there:
   no rank writes to it before. */
static tr_status let_take(const struct pipeline *self)
{
    tr_ticket *ticket = NULL;
    TR_TRY(tr_device_wait(self->head.holder));
    tr_status status = tr_comm_barrier(self->group, &ticket);
    return status == TR_OK ? tr_comm_wait(self->group, &ticket) : status;
}

tr_status pipeline_collect(tr_strategy *strategy, enum tr_arena which, int64_t begin, int64_t end, float *to)
{
    const struct pipeline *self = (const struct pipeline *)strategy;
    bool shared = which == TR_ARENA_PARAMETERS && self->parameters;
    const struct tr_staging *arena;
    TR_TRY(tr_variables_open(strategy->replicas->variables, which, &arena));
    float *own = arena->host;
    for (int rank = 0; rank < strategy->size; rank++) {
        int64_t from, until;
        owned_range(self, rank, which, &from, &until);
        if (from < begin) from = begin;
        if (until > end) until = end;
        if (from >= until) continue;
        if (shared && pipeline_stage_of(self, rank) == self->cell.stage) TR_TRY(let_take(self));
        if (strategy->rank != 0 && strategy->rank != rank) continue;
        if (rank == strategy->rank) {
            TR_TRY(tr_staging_to_host(arena, from, until));
            TR_TRY(tr_device_wait(strategy->holder));
        }
        float *here = strategy->rank == 0 ? to + (from - begin) : own + from;
        if (rank > 0)
            TR_TRY(pass_on(strategy, rank, here, until - from, tr_arena_names[which]));
        else if (here != own + from)
            memcpy(here, own + from, (size_t)(until - from) * sizeof *here);
    }
    return TR_OK;
}
