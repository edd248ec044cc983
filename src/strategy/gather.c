/* Gathering data of ranks: shards of arenas, and, where ranks keep parts of the network, the data that the
 * root saves, hashes or computes with.
 */
#include "strategy/class.h"

#include "base/fail.h"

/* Which of those arenas the optimizer keeps. Parameters are complete between steps, unless asynchronous. */
static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    const struct tr_strategy_division *division = strategy->class->division;
    unsigned kept = 0;
    for (int i = 0; i < TR_ARENAS; i++)
        if (tr_variables_arena(tr_strategy_variables(strategy), (enum tr_arena)i)) kept |= 1U << i;
    /* A single process has everything, unless the state belongs to no replica. */
    bool alone = !strategy->comm && !strategy->state && !strategy->traits.asynchronous;
    if (alone || !division || !(arenas & kept)) return TR_OK;
    return division->gather(strategy, arenas & (kept | TR_GATHER_DRAINED));
}

#define ALL_ARENAS ((1U << TR_ARENAS) - 1)

tr_status tr_strategy_drain(tr_strategy *strategy)
{
    return strategy->traits.asynchronous ? gather(strategy, ALL_ARENAS | TR_GATHER_DRAINED) : TR_OK;
}

tr_status tr_strategy_gather(tr_strategy *strategy)
{
    if (tr_strategy_is_spread(strategy)) return TR_OK;
    unsigned together = strategy->traits.asynchronous ? 0 : 1U << TR_ARENA_PARAMETERS;
    return gather(strategy, ALL_ARENAS & ~together);
}

/* Into the root's own arenas. */
tr_status tr_strategy_gather_parameters(tr_strategy *strategy)
{
    static const enum tr_arena arenas[] = {TR_ARENA_PARAMETERS, TR_ARENA_EMA};
    if (!tr_strategy_is_spread(strategy)) return tr_strategy_gather(strategy);
    for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) {
        const struct tr_staging *arena;
        int64_t floats = strategy->job->model->arena_floats;
        TR_TRY(tr_variables_open(tr_strategy_variables(strategy), arenas[i], &arena));
        if (!arena) continue;
        TR_TRY(strategy->class->division->collect(strategy, arenas[i], 0, floats, arena->host));
        if (strategy->rank == 0) TR_TRY(tr_staging_to_device(arena, 0, floats));
        TR_TRY(tr_device_wait(strategy->holder));
    }
    return TR_OK;
}

tr_status tr_strategy_gather_averages(tr_strategy *strategy)
{
    if (strategy->traits.asynchronous) return TR_OK; /* the rest included them */
    return gather(strategy, 1U << TR_ARENA_EMA);
}

/* The root may have gathered all; ranks that share the memory of its parameters must not change it. */
void tr_strategy_release(tr_strategy *strategy)
{
    if (!tr_strategy_is_spread(strategy)) return;
    if (strategy->rank == 0)
        tr_variables_trim(tr_strategy_variables(strategy));
    else
        tr_variables_trim_arena(tr_strategy_variables(strategy), TR_ARENA_EMA);
}

bool tr_strategy_saves_pieces(const tr_strategy *strategy)
{
    return tr_strategy_is_spread(strategy) || strategy->arena_count > 0;
}

/* From an arena that the root has whole. */
static tr_status copy_piece(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end)
{
    if (strategy->rank != 0) return TR_OK;
    const float *values = tr_variables_arena(tr_strategy_variables(strategy), arena);
    size_t bytes = (size_t)(end - begin) * sizeof *values;
    TR_TRY(tr_device_to_host(strategy->holder, strategy->piece, values + begin, bytes));
    return tr_device_wait(strategy->holder);
}

tr_status tr_strategy_collect(tr_strategy *strategy, int arena, int64_t begin, int64_t end,
                              const float **values)
{
    *values = strategy->piece;
    if (arena >= TR_ARENAS) return tr_strategy_bring_arena(strategy, arena - TR_ARENAS, begin, end);
    if (!tr_strategy_is_spread(strategy)) return copy_piece(strategy, (enum tr_arena)arena, begin, end);
    return strategy->class->division->collect(strategy, (enum tr_arena)arena, begin, end, strategy->piece);
}

/* Brings a parameter to the root, which adds it to the hash; `hash` is NULL elsewhere. */
static tr_status feed(void *user, const struct tr_parameter *parameter, tr_sha256 *hash)
{
    int64_t end = parameter->offset + parameter->count, next;
    for (int64_t at = parameter->offset; at < end; at = next) {
        const float *values;
        next = end - at < TR_STRATEGY_PIECE ? end : at + TR_STRATEGY_PIECE;
        TR_TRY(tr_strategy_collect(user, TR_ARENA_PARAMETERS, at, next, &values));
        if (hash) tr_sha256_add(hash, values, (size_t)(next - at) * sizeof *values);
    }
    return TR_OK;
}

tr_status tr_strategy_hash(tr_strategy *strategy, char hex[TR_SHA256_TEXT])
{
    const struct tr_model *model = strategy->job->model;
    if (!tr_strategy_is_spread(strategy)) return tr_variables_hash(tr_strategy_variables(strategy), hex);
    if (strategy->rank == 0) TR_TRY(tr_model_hash_fed(model, feed, strategy, hex));
    for (int i = 0; strategy->rank > 0 && i < model->parameter_count; i++)
        TR_TRY(feed(strategy, &model->parameters[i], NULL));
    return tr_strategy_broadcast(strategy, hex, TR_SHA256_TEXT);
}
