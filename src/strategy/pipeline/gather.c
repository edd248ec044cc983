/* Bringing together what the stages keep: on the chief, for a while, what it saves or evaluates; and, piece
 * by piece, what it hashes.
 *
 * Everything goes to the chief alone, in messages that sender and receiver take in the same order: arenas one
 * after another, and ranks in theirs.
 */
#include "strategy/pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/fail.h"

#define PIECE ((int64_t)1 << 20) /* floats of a message with parameters to be hashed */

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

tr_status pipeline_gather(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    TR_TRY(pipeline_gather_parameters(strategy));
    for (int i = TR_ARENA_M; i < TR_ARENAS; i++)
        if (i != TR_ARENA_EMA) TR_TRY(bring(self, 1, (enum tr_arena)i));
    return TR_OK;
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

/* ---- the hash ---- */

/* The first replica of the stage that has a parameter. */
static int holder_of(const struct pipeline *self, const struct tr_parameter *parameter)
{
    int rank = 0;
    while (parameter->offset >= self->share[rank + self->replicas]) rank += self->replicas;
    return rank;
}

static tr_status feed(void *user, const struct tr_parameter *parameter, tr_sha256 *hash)
{
    struct pipeline *self = user;
    tr_strategy *strategy = &self->head;
    int rank = holder_of(self, parameter);
    const float *own = tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS) + parameter->offset;
    for (int64_t at = 0; at < parameter->count; at += PIECE) {
        int64_t count = parameter->count - at < PIECE ? parameter->count - at : PIECE;
        const float *values = rank == 0 ? own + at : self->piece;
        if (rank != 0) TR_TRY(pass_on(strategy, rank, self->piece, count, parameter->name));
        tr_sha256_add(hash, values, (size_t)count * sizeof *values);
    }
    return TR_OK;
}

static tr_status hash_on_chief(struct pipeline *self, char hex[TR_SHA256_TEXT])
{
    if (!self->piece) self->piece = tr_alloc((size_t)PIECE, sizeof *self->piece);
    if (!self->piece) return TR_ENOMEM;
    tr_status status = tr_model_hash_fed(self->head.job->model, feed, self, hex);
    if (status != TR_OK) return status; /* a message may still come: the piece stays */
    tr_free(self->piece);
    self->piece = NULL;
    return TR_OK;
}

/* What the chief receives of this rank. */
static tr_status send_parameters(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    const struct tr_model *model = strategy->job->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (holder_of(self, parameter) != strategy->rank) continue;
        float *values = tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS) + parameter->offset;
        for (int64_t at = 0; at < parameter->count; at += PIECE) {
            int64_t count = parameter->count - at < PIECE ? parameter->count - at : PIECE;
            TR_TRY(pass_on(strategy, strategy->rank, values + at, count, parameter->name));
        }
    }
    return TR_OK;
}

tr_status pipeline_hash(tr_strategy *strategy, char hex[TR_SHA256_TEXT])
{
    struct pipeline *self = self_of(strategy);
    return strategy->rank == 0 ? hash_on_chief(self, hex) : send_parameters(self);
}
