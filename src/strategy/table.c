/* The built-in strategies, and room for those that programs add. To add a built-in one, add a line here. */
#include "strategy/class.h"

#include "base/fail.h"
#include "strategy/choice.h"

#define CLASSES_MOST 16

static const struct tr_entry *entries[CLASSES_MOST + 1] = {
    &tr_strategy_all_reduce.entry,
    &tr_strategy_easgd.entry,
    &tr_strategy_gossip.entry,
    &tr_strategy_local_sgd.entry,
    &tr_strategy_parameter_server.entry,
    &tr_strategy_pipeline.entry,
    NULL,
};

const struct tr_registry tr_strategies = {
    .kind = "strategy",
    .form = "`allreduce` or `local-sgd: {replicas: 2}`",
    .fallback = "allreduce",
    .entries = entries,
};

tr_status tr_strategy_register(const struct tr_strategy_class *class)
{
    int32_t count = tr_registry_count(&tr_strategies);
    TR_TRY(tr_strategy_check_version(class));
    if (tr_registry_find(&tr_strategies, class->name))
        return tr_fail(TR_EINVAL, "there is a strategy \"%s\" already; choose another name", class->name);
    if (count == CLASSES_MOST)
        return tr_fail(TR_EINVAL, "no room for the strategy \"%s\" beside %d others", class->name,
                       (int)count);
    entries[count + 1] = NULL;
    entries[count] = &class->entry;
    return TR_OK;
}
