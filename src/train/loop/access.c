/* What a trainer shows of itself to the rest of the library, and what imports do with it; see trainer.h. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_job *trainer_job(const tr_trainer *trainer)
{
    return trainer->job;
}

tr_device *trainer_device(const tr_trainer *trainer)
{
    return trainer->device;
}

tr_strategy *trainer_strategy(const tr_trainer *trainer)
{
    return trainer->strategy;
}

tr_variables *trainer_variables(const tr_trainer *trainer)
{
    return trainer->variables;
}

int64_t trainer_steps_done(const tr_trainer *trainer)
{
    return trainer->step;
}

const struct tr_train_memory *trainer_memory(const tr_trainer *trainer)
{
    return &trainer->memory;
}

bool trainer_has_evaluator(const tr_trainer *trainer, enum tr_data_set set)
{
    return trainer->evaluator[set] != NULL;
}

tr_status trainer_load_parameters(tr_trainer *trainer, const float *arena)
{
    TR_TRY(tr_variables_load(trainer->variables, TR_ARENA_PARAMETERS, arena));
    if (!tr_variables_arena(trainer->variables, TR_ARENA_EMA)) return TR_OK;
    return tr_variables_load(trainer->variables, TR_ARENA_EMA, arena);
}

tr_status trainer_set_directory(tr_trainer *trainer, const char *directory)
{
    trainer->out = tr_strdup(directory);
    return trainer->out ? trainer_take_directory(trainer) : TR_ENOMEM;
}
