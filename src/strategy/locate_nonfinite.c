/* Finds the name of the first tensor of a step that is not finite. */
#include "strategy/driver.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

/* No rank can find it alone: the root repeats the step with the whole network. */
static tr_status locate_whole(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    const struct tr_train_options *train = &strategy->job->train;
    struct tr_gradient_part part = {.end = train->microbatches, .end_step = train->steps};
    tr_gradient *gradient;
    TR_TRY(tr_gradient_create(strategy->device, strategy->job, strategy->replicas->variables, &part, NULL,
                              &gradient));
    tr_status status = tr_gradient_locate_nonfinite(gradient, step, name, size);
    tr_gradient_destroy(&gradient);
    return status;
}

static tr_status locate_spread(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    TR_TRY(tr_strategy_gather_parameters(strategy));
    if (strategy->rank == 0) TR_TRY(locate_whole(strategy, step, name, size));
    tr_strategy_release(strategy);
    return tr_strategy_broadcast(strategy, name, size);
}

/* With separate replicas, the rank with the bad one informs all. */
static tr_status locate_replica(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    int64_t replica = strategy->digest->replica < 0 ? 0 : strategy->digest->replica;
    int owner = 0;
    tr_ticket *ticket = NULL;
    while (tr_driver_first_report(strategy, owner + 1) <= replica) owner++;
    if (owner == strategy->rank) {
        int own = (int)(replica - tr_driver_first_report(strategy, owner));
        TR_TRY(tr_gradient_locate_nonfinite(strategy->replicas[own].gradient, step, name, size));
        size_t used = strlen(name);
        snprintf(name + used, size - used, " of replica %lld", (long long)replica);
    }
    if (!strategy->comm) return TR_OK;
    tr_status status = tr_comm_broadcast(strategy->comm, owner, name, size, "bad tensor", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

tr_status tr_driver_locate_nonfinite(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    bool apart = !strategy->traits.asynchronous && !tr_driver_is_together(strategy);
    if (apart) return locate_replica(strategy, step, name, size);
    if (tr_strategy_class_spreads(strategy->class)) return locate_spread(strategy, step, name, size);
    if (strategy->replicas->gradient)
        return tr_gradient_locate_nonfinite(strategy->replicas->gradient, step, name, size);
    snprintf(name, size, "gradient");
    return TR_OK;
}
