/* Arenas of a class: state besides the parameters and the optimizer's state. All ranks know them by number
 * and name; their place is up to the class; the root saves them piece by piece.
 */
#include "strategy/class.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/ascii.h"

#include <stdio.h>
#include <string.h>

#define TAG                                                                                                  \
    0 /* tag of pieces on their way to the root: classes with arenas send no other messages                  \
         meanwhile */

/* ---- names ---- */

/* The rest of `text` after `name`, in which # stands for a number; NULL: `text` begins otherwise. */
static const char *behind(const char *text, const char *name)
{
    for (; *name; name++) {
        if (*name != '#') {
            if (*text++ != *name) return NULL;
            continue;
        }
        if (!tr_is_digit(*text)) return NULL;
        while (tr_is_digit(*text)) text++;
    }
    return text;
}

static const char *behind_one_of(const char *text, const struct tr_strategy_class *class)
{
    for (int i = 0; class->arenas && class->arenas[i]; i++) {
        const char *rest = behind(text, class->arenas[i]);
        if (rest && (*rest == '.' || *rest == '\0')) return rest;
    }
    return NULL;
}

const char *tr_strategy_arena_parameter(const char *tensor)
{
    for (int i = 0; tr_strategy_class_at(i); i++) {
        const char *rest = behind_one_of(tensor, tr_strategy_class_at(i));
        if (rest && *rest == '.') return rest + 1;
    }
    return NULL;
}

/* ---- making ---- */

static tr_status add(tr_strategy *strategy, const char *name, struct tr_strategy_arena **out)
{
    const char *rest = behind_one_of(name, strategy->class);
    if (!rest || *rest || strlen(name) >= TR_STRATEGY_ARENA_NAME)
        return tr_fail(TR_EINVAL, "the strategy %s has an arena \"%s\", which its class does not name",
                       strategy->class->name, name);
    if (!tr_grow(&strategy->arenas, strategy->arena_count, sizeof *strategy->arenas)) return TR_ENOMEM;
    *out = &strategy->arenas[strategy->arena_count++];
    **out = (struct tr_strategy_arena){.like = TR_ARENAS};
    snprintf((*out)->name, sizeof(*out)->name, "%s", name);
    return TR_OK;
}

tr_status tr_strategy_make_arena(tr_strategy *strategy, const char *name, const int64_t *shard, float **out)
{
    int64_t floats = strategy->job->model->arena_floats;
    struct tr_strategy_arena *arena = NULL;
    TR_TRY(add(strategy, name, &arena));
    arena->shard = shard;
    TR_TRY(tr_staging_make(strategy->holder, floats, NULL, &arena->memory));
    *out = arena->values = arena->memory.data;
    struct tr_op_fill zero = {floats, 0, arena->values};
    TR_TRY(tr_device_fill(strategy->holder, &zero));
    return tr_device_wait(strategy->holder);
}

tr_status tr_strategy_lend_arena(tr_strategy *strategy, const char *name, enum tr_arena like, int rank,
                                 float *values)
{
    struct tr_strategy_arena *arena = NULL;
    TR_TRY(add(strategy, name, &arena));
    arena->like = like;
    arena->rank = rank;
    arena->values = values;
    return TR_OK;
}

void tr_strategy_release_arenas(tr_strategy *strategy)
{
    for (int i = 0; i < strategy->arena_count; i++) tr_staging_release(&strategy->arenas[i].memory);
    tr_free(strategy->arenas);
}

int64_t tr_strategy_arenas_memory(const tr_strategy *strategy)
{
    int64_t bytes = 0;
    for (int i = 0; i < strategy->arena_count; i++)
        bytes += (int64_t)tr_staging_memory(&strategy->arenas[i].memory);
    return bytes;
}

int tr_strategy_arena_count(const tr_strategy *strategy)
{
    return strategy->arena_count;
}

struct tr_strategy_arena *tr_strategy_arena(tr_strategy *strategy, int index)
{
    return &strategy->arenas[index];
}

tr_status tr_strategy_begin_arenas(tr_strategy *strategy)
{
    for (int i = 0; i < strategy->arena_count; i++) {
        struct tr_strategy_arena *arena = &strategy->arenas[i];
        bool begun = arena->begun;
        arena->begun = true;
        if (begun || !arena->values || arena->like == TR_ARENAS) continue;
        const float *from = tr_variables_arena(tr_strategy_variables(strategy), arena->like);
        struct tr_op_scale copy = {strategy->job->model->arena_floats, 1, from, arena->values};
        TR_TRY(tr_device_scale(strategy->holder, &copy));
    }
    return tr_device_wait(strategy->holder);
}

/* ---- to the root ---- */

/* Copies floats of an arena into the piece, on the root; on another rank sends them there. */
static tr_status bring_own(tr_strategy *strategy, const struct tr_strategy_arena *arena, int64_t begin,
                           int64_t end, float *to)
{
    size_t bytes = (size_t)(end - begin) * sizeof *to;
    tr_ticket *ticket = NULL;
    TR_TRY(tr_device_to_host(strategy->holder, to, arena->values + begin, bytes));
    TR_TRY(tr_device_wait(strategy->holder));
    if (strategy->rank == 0) return TR_OK;
    tr_status status = tr_comm_send_numbers(strategy->comm, 0, TAG, to, bytes, arena->name, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

static tr_status receive(tr_strategy *strategy, const struct tr_strategy_arena *arena, int rank, float *to,
                         int64_t floats)
{
    tr_ticket *ticket = NULL;
    tr_status status =
        tr_comm_receive(strategy->comm, rank, TAG, to, (size_t)floats * sizeof *to, arena->name, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

tr_status tr_strategy_bring_arena(tr_strategy *strategy, int index, int64_t begin, int64_t end)
{
    const struct tr_strategy_arena *arena = &strategy->arenas[index];
    for (int rank = 0; rank < strategy->size; rank++) {
        int64_t from = begin, until = end;
        if (arena->shard) {
            if (from < arena->shard[rank]) from = arena->shard[rank];
            if (until > arena->shard[rank + 1]) until = arena->shard[rank + 1];
        }
        if (from >= until || (!arena->shard && arena->rank != rank)) continue;
        float *to = strategy->piece + (from - begin);
        if (rank == strategy->rank)
            TR_TRY(bring_own(strategy, arena, from, until, to));
        else if (strategy->rank == 0)
            TR_TRY(receive(strategy, arena, rank, to, until - from));
    }
    return TR_OK;
}
