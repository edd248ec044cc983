/* What a trainer takes of the memory of its host, and files of data that change under it. */
#include "train/trainer_internal.h"

#include "base/fail.h"

#include <stdio.h>

tr_status trainer_expect_memory(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    int64_t own, shared;
    TR_TRY(
        tr_train_expect_memory(trainer->job, trainer->comm ? tr_comm_size(trainer->comm) : 1, &own, &shared));
    return tr_train_admit_memory(trainer->comm, own, shared, 0, &trainer->room, !settings->no_memory_check,
                                 &trainer->memory);
}

tr_status trainer_count_memory(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    enum tr_strategy_keeping keeping;
    int64_t own = (int64_t)tr_strategy_memory(trainer->strategy), shared = 0, evaluation = 0;
    int64_t data = tr_train_data_memory(trainer->job);
    TR_TRY(tr_strategy_keeping(trainer->job, &keeping));
    if (keeping == TR_KEEP_ALL) {
        shared = trainer->job->model->arena_floats * (int64_t)sizeof(float);
        if (shared > own) shared = own;
        TR_TRY(tr_train_evaluation_memory(trainer->device, trainer->job, &evaluation));
    }
    return tr_train_admit_memory(trainer->comm, own - shared + evaluation, shared + data, data,
                                 &trainer->room, !settings->no_memory_check, &trainer->memory);
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
