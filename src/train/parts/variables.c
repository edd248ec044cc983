#include "train/parts/variables.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

void trainer_variables_begin(struct trainer_variables *variables)
{
    *variables = (struct trainer_variables){.hash_step = -1};
}

void trainer_variables_release(struct trainer_variables *variables)
{
    tr_strategy_destroy(&variables->strategy);
    tr_device_destroy(&variables->own_holder);
    tr_device_destroy(&variables->device);
    tr_free(variables->shares_given);
    trainer_variables_begin(variables);
}

void trainer_variables_replace(struct trainer_variables *variables, tr_strategy *strategy, int64_t step)
{
    tr_strategy_destroy(&variables->strategy);
    variables->strategy = strategy;
    variables->arenas = tr_strategy_variables(strategy);
    variables->step = step;
}

/* After gathering: counts the steps of an asynchronous run meanwhile. */
static tr_status gathered(struct trainer_variables *variables, tr_status status)
{
    if (status == TR_OK) variables->step += tr_strategy_take_ahead(variables->strategy);
    return status;
}

tr_status trainer_variables_gather(struct trainer_variables *variables)
{
    return gathered(variables, tr_strategy_gather(variables->strategy));
}

tr_status trainer_variables_gather_parameters(struct trainer_variables *variables)
{
    return gathered(variables, tr_strategy_gather_parameters(variables->strategy));
}

tr_status trainer_variables_settle(struct trainer_variables *variables)
{
    return gathered(variables, tr_strategy_drain(variables->strategy));
}

void trainer_variables_drop(struct trainer_variables *variables)
{
    tr_strategy_release(variables->strategy);
}

tr_status trainer_variables_note_hash(struct trainer_variables *variables)
{
    if (!tr_strategy_is_spread(variables->strategy) || variables->hash_step == variables->step) return TR_OK;
    TR_TRY(tr_strategy_hash(variables->strategy, variables->hash));
    variables->hash_step = variables->step;
    return TR_OK;
}

tr_status trainer_variables_hash(const struct trainer_variables *variables, char hex[TR_SHA256_TEXT])
{
    if (!tr_strategy_is_spread(variables->strategy)) return tr_variables_hash(variables->arenas, hex);
    if (variables->hash_step != variables->step)
        return tr_fail(
            TR_EINVAL,
            "under the strategy %s each process has a part of the parameters, whose hash is known after a "
            "run and after saving only, but step %lld came since",
            tr_strategy_name(variables->strategy), (long long)variables->step);
    memcpy(hex, variables->hash, sizeof variables->hash);
    return TR_OK;
}
