/* What a trainer takes of the memory of its host, and files of data that change under it. */
#include "train/loop/internal.h"

#include "base/fail.h"

#include <stdio.h>

tr_status trainer_expect_memory(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    struct tr_train_expected expected;
    struct tr_train_demand demand = {0};
    TR_TRY(tr_train_expect_memory(trainer->job, trainer->comm ? tr_comm_size(trainer->comm) : 1, &expected));
    tr_train_demand_add(&demand, trainer->device, expected.gradient);
    tr_train_demand_add(&demand, trainer->holder, expected.states);
    if (tr_device_memory(trainer->holder) > 0)
        tr_train_demand_add(&demand, trainer->holder, expected.parameters);
    else
        demand.shared = expected.parameters;
    return tr_train_admit_memory(trainer->comm, &demand, &trainer->room, !settings->no_memory_check,
                                 &trainer->memory);
}

tr_status trainer_count_memory(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    enum tr_strategy_keeping keeping;
    struct tr_train_demand demand = {.data = tr_train_data_memory(trainer->job)};
    int64_t variables, gradients, evaluation = 0, shared = 0;
    tr_strategy_memory_parts(trainer->strategy, &variables, &gradients);
    TR_TRY(tr_strategy_keeping(trainer->job, &keeping));
    if (keeping == TR_KEEP_ALL) {
        TR_TRY(tr_train_evaluation_memory(trainer->device, trainer->job, &evaluation));
        shared = trainer->job->model->arena_floats * (int64_t)sizeof(float);
    }
    if (tr_device_memory(trainer->holder) > 0) shared = 0;
    if (shared > variables) shared = variables;
    demand.shared = shared + demand.data;
    tr_train_demand_add(&demand, trainer->device, gradients + evaluation);
    tr_train_demand_add(&demand, trainer->holder, variables - shared);
    /* Windows, and numbers on their way to other ranks. */
    demand.own += (int64_t)tr_strategy_memory(trainer->strategy) - gradients - variables;
    return tr_train_admit_memory(trainer->comm, &demand, &trainer->room, !settings->no_memory_check,
                                 &trainer->memory);
}

bool trainer_data_changed(const tr_trainer *trainer, char *text, size_t size)
{
    if (trainer->comm && tr_comm_local_rank(trainer->comm) > 0) return false;
    for (int set = 0; set < TR_SETS; set++) {
        const tr_source *source = trainer->job->source[set];
        const char *path = source ? tr_source_files_changed(&source->files) : NULL;
        if (!path) continue;
        snprintf(text, size,
                 "\"%s\" (%s data) has changed since the run began; a run with the new contents would end "
                 "with another hash",
                 path, tr_data_set_names[set]);
        return true;
    }
    return false;
}
