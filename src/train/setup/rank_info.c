#include "train/setup/rank_info.h"

#include "base/alloc.h"
#include "base/sized.h"
#include "train/loop/internal.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

static void end_strings(struct trainer_rank_info *info)
{
    info->host[sizeof info->host - 1] = '\0';
    info->device[sizeof info->device - 1] = '\0';
    info->holder[sizeof info->holder - 1] = '\0';
}

tr_status tr_train_gather_rank_info(tr_comm *comm, const tr_device *device, const tr_device *holder,
                                    size_t memory, struct trainer_rank_info **out)
{
    size_t size = comm ? (size_t)tr_comm_size(comm) : 1;
    struct trainer_rank_info *rank_info = *out = tr_alloc_zero(size, sizeof *rank_info);
    if (!rank_info) return TR_ENOMEM;
    struct trainer_rank_info *own = &rank_info[comm ? tr_comm_rank(comm) : 0];
    if (comm)
        snprintf(own->host, sizeof own->host, "%s", tr_comm_host(comm, tr_comm_rank(comm)));
    else if (gethostname(own->host, sizeof own->host) != 0)
        snprintf(own->host, sizeof own->host, "unknown");
    snprintf(own->device, sizeof own->device, "%s", device->description);
    snprintf(own->holder, sizeof own->holder, "%s", holder->description);
    own->threads = device->threads;
    own->memory = (int64_t)memory;
    if (!comm) return TR_OK;
    tr_status status = tr_comm_exchange(comm, rank_info, sizeof *rank_info, "facts about ranks");
    for (size_t r = 0; r < size; r++) end_strings(&rank_info[r]);
    return status;
}

tr_status tr_trainer_placement(const tr_trainer *trainer, int rank, struct tr_train_placement *out)
{
    const struct tr_model *model = trainer->job->model;
    struct tr_placement part;
    assert(rank >= 0 && rank < (trainer->crew.comm ? tr_comm_size(trainer->crew.comm) : 1));
    tr_strategy_placement(trainer->variables.strategy, rank, &part);
    const struct trainer_rank_info *info = &trainer->host.rank_info[rank];
    bool computes = part.first_layer < part.end_layer && part.first_microbatch < part.end_microbatch;
    const struct tr_train_placement facts = {
        .host = info->host,
        .role = part.role,
        .device = info->device,
        .holder = info->holder,
        .threads = (int)info->threads,
        .memory = info->memory,
        .first_microbatch = part.first_microbatch,
        .end_microbatch = part.end_microbatch,
        .first_layer = computes ? model->layers[part.first_layer].name : "",
        .last_layer = computes ? model->layers[part.end_layer - 1].name : "",
        .parameters = part.parameters,
        .updates = part.updates,
    };
    return tr_sized_give(&facts, sizeof facts, "TR_TRAIN_PLACEMENT_INIT", out);
}
