#include "strategy/replicas/replicas.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

#include <stdio.h>

static int replicas_of(const void *options)
{
    return ((const struct tr_replicas_options *)options)->replicas;
}

tr_status tr_replicas_check(const struct tr_job *job, const void *options, int ranks)
{
    int replicas = replicas_of(options);
    TR_TRY(tr_shares_suffice(job->train.microbatches, replicas, "replicas"));
    if (ranks > replicas)
        return tr_fail(TR_EINVAL, "%d ranks share %d replicas; start fewer ranks or choose more replicas",
                       ranks, replicas);
    return TR_OK;
}

tr_status tr_replicas_create(tr_strategy *strategy)
{
    int replicas = replicas_of(strategy->options);
    const struct tr_job *job = strategy->job;
    strategy->replica_bound = tr_alloc((size_t)strategy->size + 1, sizeof *strategy->replica_bound);
    if (!strategy->replica_bound) return TR_ENOMEM;
    tr_tree_cut(replicas, strategy->size, strategy->replica_bound);
    int count = (int)(strategy->replica_bound[strategy->rank + 1] - tr_replicas_first(strategy));
    struct tr_replica *own = tr_alloc_zero((size_t)count, sizeof *own);
    if (!own) return TR_ENOMEM;
    strategy->replicas = own;
    strategy->replica_count = count;
    for (int i = 0; i < count; i++)
        TR_TRY(tr_variables_create(strategy->holder, job->model, &job->optimizer, NULL, &own[i].variables));
    return tr_average_create(strategy, &((struct tr_replicas *)strategy)->average);
}

void tr_replicas_destroy(tr_strategy *strategy)
{
    tr_average_destroy(&((struct tr_replicas *)strategy)->average);
}

tr_status tr_replicas_begin(tr_strategy *strategy)
{
    const struct tr_train_options *train = &strategy->job->train;
    int64_t all = tr_replicas_total(strategy), first = tr_replicas_first(strategy);
    for (int i = 0; i < strategy->replica_count; i++) {
        struct tr_replica *replica = &strategy->replicas[i];
        struct tr_gradient_part part = {
            .first = tr_cut(train->microbatches, all, first + i),
            .end = tr_cut(train->microbatches, all, first + i + 1),
            .end_step = train->steps,
            .alone = true,
        };
        TR_TRY(tr_gradient_create(strategy->device, strategy->job, replica->variables, &part, NULL,
                                  &replica->gradient));
    }
    return TR_OK;
}

tr_status tr_replicas_move(tr_strategy *strategy, int64_t count, const float *from, float *to)
{
    struct tr_op_scale copy = {count, 1, from, to};
    return tr_device_scale(strategy->holder, &copy);
}

tr_status tr_replicas_copy(tr_strategy *strategy)
{
    for (int i = 1; i < strategy->replica_count; i++)
        for (int a = 0; a < TR_ARENAS; a++) {
            float *to = tr_variables_arena(strategy->replicas[i].variables, (enum tr_arena)a);
            const float *from = tr_variables_arena(strategy->replicas->variables, (enum tr_arena)a);
            if (to) TR_TRY(tr_replicas_move(strategy, strategy->job->model->arena_floats, from, to));
        }
    return tr_device_wait(strategy->holder);
}

/* Arena by arena and replica by replica, in the same order on all ranks. */
static tr_status lend(tr_strategy *strategy, enum tr_arena arena, int rank, int64_t replica)
{
    char name[TR_STRATEGY_ARENA_NAME];
    float *values = NULL;
    if (rank == strategy->rank)
        values =
            tr_variables_arena(strategy->replicas[replica - tr_replicas_first(strategy)].variables, arena);
    snprintf(name, sizeof name, "replica%d.%s", (int)replica, tr_arena_names[arena]);
    return tr_strategy_lend_arena(strategy, name, arena, rank, values);
}

tr_status tr_replicas_keep_apart(tr_strategy *strategy)
{
    const struct tr_job *job = strategy->job;
    TR_TRY(tr_variables_create(strategy->holder, job->model, &job->optimizer, NULL, &strategy->state));
    for (int a = 0; a < TR_ARENAS; a++) {
        if (!tr_variables_arena(strategy->state, (enum tr_arena)a)) continue;
        for (int rank = 0; rank < strategy->size; rank++)
            for (int64_t r = strategy->replica_bound[rank]; r < strategy->replica_bound[rank + 1]; r++)
                TR_TRY(lend(strategy, (enum tr_arena)a, rank, r));
    }
    return TR_OK;
}

bool tr_replicas_narrow(const tr_strategy *strategy, int index, int64_t *begin, int64_t *end)
{
    const struct tr_parameter *parameter = &strategy->job->model->parameters[index];
    if (*begin < parameter->offset) *begin = parameter->offset;
    if (*end > parameter->offset + parameter->count) *end = parameter->offset + parameter->count;
    return *begin < *end && parameter->kind != TR_PARAMETER_STATISTIC;
}
