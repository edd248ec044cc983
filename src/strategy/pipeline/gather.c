/* Bringing together what the stages keep: piece by piece, what the chief saves and hashes; and, for a while,
 * the parameters, where it wants to compute with all of them.
 *
 * Everything goes to the chief alone, in messages that sender and receiver take in the same order: arenas one
 * after another, and ranks in theirs.
 */
#include "strategy/pipeline/pipeline.h"

#include "base/fail.h"

#include <string.h>

static struct pipeline *self_of(tr_strategy *strategy)
{
    return (struct pipeline *)strategy;
}

/* Floats from one rank to the chief, called by these two. */
static tr_status pass_on(tr_strategy *strategy, int rank, float *floats, int64_t count, const char *name)
{
    tr_comm *comm = strategy->comm;
    size_t bytes = (size_t)count * sizeof *floats;
    tr_ticket *ticket = NULL;
    tr_status status = strategy->rank == 0
                           ? tr_comm_receive(comm, rank, STAGE_TAG_GATHER, floats, bytes, name, &ticket)
                           : tr_comm_send(comm, 0, STAGE_TAG_GATHER, floats, bytes, name, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

/* The floats of an arena that a rank has up to date, [*begin, *end); of the parameters, which all replicas of
   a stage have, the first one is asked. */
static void shares(const struct pipeline *self, int rank, enum tr_arena arena, int64_t *begin, int64_t *end)
{
    bool parameters = arena == TR_ARENA_PARAMETERS, first = pipeline_replica_of(self, rank) == 0;
    *begin = self->share[rank];
    *end = self->share[parameters ? (first ? rank + self->replicas : rank) : rank + 1];
}

/* Brings the floats [begin, end) of an arena to `to` on the chief, as far as this rank has to do with them.
 */
static tr_status collect(struct pipeline *self, enum tr_arena which, int64_t begin, int64_t end, float *to)
{
    tr_strategy *strategy = &self->head;
    float *own = tr_variables_arena(strategy->variables, which);
    for (int rank = 0; rank < strategy->size; rank++) {
        int64_t from, until;
        shares(self, rank, which, &from, &until);
        if (from < begin) from = begin;
        if (until > end) until = end;
        if (from >= until || (strategy->rank != 0 && strategy->rank != rank)) continue;
        float *here = strategy->rank == 0 ? to + (from - begin) : own + from;
        if (rank > 0)
            TR_TRY(pass_on(strategy, rank, here, until - from, tr_arena_names[which]));
        else if (here != own + from)
            memcpy(here, own + from, (size_t)(until - from) * sizeof *here);
    }
    return TR_OK;
}

/* The whole arena, into that of the chief. */
static tr_status collect_arena(struct pipeline *self, enum tr_arena which)
{
    float *arena = tr_variables_arena(self->head.variables, which);
    return arena ? collect(self, which, 0, self->share[self->head.size], arena) : TR_OK;
}

tr_status pipeline_gather_parameters(tr_strategy *strategy)
{
    TR_TRY(collect_arena(self_of(strategy), TR_ARENA_PARAMETERS));
    return collect_arena(self_of(strategy), TR_ARENA_EMA);
}

tr_status pipeline_bring(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                         const float **values)
{
    struct pipeline *self = self_of(strategy);
    if (strategy->rank == 0) *values = self->piece;
    return collect(self, arena, begin, end, self->piece);
}

/* The averages of a stage are spread over its replicas. */
tr_status pipeline_gather_averages(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    if (!self->group) return TR_OK;
    float *arena = tr_variables_arena(strategy->variables, TR_ARENA_EMA);
    float *own = arena + self->share[self->place.stage * self->replicas];
    tr_ticket *ticket = NULL;
    TR_TRY(
        tr_comm_all_gather(self->group, own, self->part_bytes, NULL, tr_arena_names[TR_ARENA_EMA], &ticket));
    return tr_comm_wait(self->group, &ticket);
}

/* The chief may have gathered all; its replicas, which share the memory of its parameters, must leave that to
   it. */
void pipeline_release(tr_strategy *strategy)
{
    if (strategy->rank == 0)
        tr_variables_trim(strategy->variables);
    else
        tr_variables_trim_arena(strategy->variables, TR_ARENA_EMA);
}
