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

/* The shares of all ranks from `first` on, as far as this rank has to do with them. */
static tr_status bring(struct pipeline *self, int first, enum tr_arena which)
{
    tr_strategy *strategy = &self->head;
    float *arena = tr_variables_arena(strategy->variables, which);
    for (int rank = first; arena && rank < strategy->size; rank++) {
        if (strategy->rank != 0 && strategy->rank != rank) continue;
        int64_t begin = self->share[rank], count = self->share[rank + 1] - begin;
        TR_TRY(pass_on(strategy, rank, arena + begin, count, tr_arena_names[which]));
    }
    return TR_OK;
}

tr_status pipeline_gather_parameters(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    TR_TRY(bring(self, self->replicas, TR_ARENA_PARAMETERS)); /* the chief has its own stage's */
    return bring(self, 1, TR_ARENA_EMA);
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

/* ---- pieces ---- */

/* The floats of an arena that a rank has up to date, [*begin, *end); of the parameters, which all replicas of
   a stage have, the first one is asked. */
static void shares(const struct pipeline *self, int rank, enum tr_arena arena, int64_t *begin, int64_t *end)
{
    bool parameters = arena == TR_ARENA_PARAMETERS, first = pipeline_replica_of(self, rank) == 0;
    *begin = self->share[rank];
    *end = self->share[parameters ? (first ? rank + self->replicas : rank) : rank + 1];
}

tr_status pipeline_bring(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                         const float **values)
{
    struct pipeline *self = self_of(strategy);
    float *floats = tr_variables_arena(strategy->variables, arena);
    if (strategy->rank == 0) *values = self->piece;
    for (int rank = 0; rank < strategy->size; rank++) {
        int64_t from, to;
        shares(self, rank, arena, &from, &to);
        if (from < begin) from = begin;
        if (to > end) to = end;
        if (from >= to || (strategy->rank != 0 && strategy->rank != rank)) continue;
        if (rank == 0)
            memcpy(self->piece + (from - begin), floats + from, (size_t)(to - from) * sizeof *floats);
        else
            TR_TRY(pass_on(strategy, rank, strategy->rank == 0 ? self->piece + (from - begin) : floats + from,
                           to - from, tr_arena_names[arena]));
    }
    return TR_OK;
}
