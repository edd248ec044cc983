/* The strategies that were built in. */
#include "strategy/class.h"

const struct tr_strategy_class *const tr_strategy_classes[] = {
    &tr_strategy_all_reduce,
    &tr_strategy_local_sgd,
    &tr_strategy_parameter_server,
    &tr_strategy_pipeline,
    NULL,
};
