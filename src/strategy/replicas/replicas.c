#include "strategy/replicas/replicas.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

tr_status tr_replicas_check(const struct tr_job *job, int replicas, int ranks)
{
    TR_TRY(tr_shares_suffice(job->train.microbatches, replicas, "replicas"));
    if (ranks > replicas)
        return tr_fail(TR_EINVAL, "%d ranks share %d replicas; start fewer ranks or choose more replicas",
                       ranks, replicas);
    return TR_OK;
}

tr_status tr_replicas_create(tr_strategy *strategy, int replicas)
{
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
    return TR_OK;
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
