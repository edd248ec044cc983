#include "train/setup/host.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>

void trainer_host_look(struct trainer_host *host, const struct tr_train_settings *settings)
{
    tr_memory_look(settings->system_root, &host->room);
    host->check = !settings->no_memory_check;
}

void trainer_host_release(struct trainer_host *host)
{
    tr_free(host->rank_info);
    host->rank_info = NULL;
}

tr_status trainer_host_gather_rank_info(struct trainer_host *host, tr_comm *comm,
                                        const struct trainer_variables *variables)
{
    trainer_host_release(host);
    return tr_train_gather_rank_info(comm, variables->device, variables->holder,
                                     tr_strategy_memory(variables->strategy), &host->rank_info);
}

tr_status trainer_host_expect(struct trainer_host *host, const struct tr_job *job, tr_comm *comm,
                              const struct trainer_variables *variables)
{
    struct tr_train_expected expected;
    struct tr_train_demand demand = {0};
    TR_TRY(tr_train_expect_memory(job, comm ? tr_comm_size(comm) : 1, &expected));
    tr_train_demand_add(&demand, variables->device, expected.gradient);
    tr_train_demand_add(&demand, variables->holder, expected.states);
    if (tr_device_memory(variables->holder) > 0)
        tr_train_demand_add(&demand, variables->holder, expected.parameters);
    else
        demand.shared = expected.parameters;
    return tr_train_admit_memory(comm, &demand, &host->room, host->check, &host->memory);
}

tr_status trainer_host_count(struct trainer_host *host, const struct tr_job *job, tr_comm *comm,
                             const struct trainer_variables *variables)
{
    enum tr_strategy_keeping keeping;
    struct tr_train_demand demand = {.data = tr_train_data_memory(job)};
    int64_t taken, gradients, evaluation = 0, shared = 0;
    tr_strategy_memory_parts(variables->strategy, &taken, &gradients);
    TR_TRY(tr_strategy_keeping(job, &keeping));
    if (keeping != TR_KEEP_PARTS) TR_TRY(tr_train_evaluation_memory(variables->device, job, &evaluation));
    if (keeping == TR_KEEP_ALL && tr_device_memory(variables->holder) == 0)
        shared = job->model->arena_floats * (int64_t)sizeof(float);
    if (shared > taken) shared = taken;
    demand.shared = shared + demand.data;
    tr_train_demand_add(&demand, variables->device, gradients + evaluation);
    tr_train_demand_add(&demand, variables->holder, taken - shared);
    /* Windows, and numbers on their way to other ranks. */
    demand.own += (int64_t)tr_strategy_memory(variables->strategy) - gradients - taken;
    return tr_train_admit_memory(comm, &demand, &host->room, host->check, &host->memory);
}

bool trainer_data_changed(const struct tr_job *job, const tr_comm *comm, char *text, size_t size)
{
    if (comm && tr_comm_local_rank(comm) > 0) return false;
    for (int set = 0; set < TR_SETS; set++) {
        const tr_source *source = job->source[set];
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
