#include "train/setup/place.h"

#include "base/alloc.h"
#include "base/sized.h"
#include "train/loop/internal.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

static void end_strings(struct trainer_place *place)
{
    place->host[sizeof place->host - 1] = '\0';
    place->device[sizeof place->device - 1] = '\0';
    place->holder[sizeof place->holder - 1] = '\0';
}

tr_status tr_train_gather_places(tr_comm *comm, const tr_device *device, const tr_device *holder,
                                 size_t memory, struct trainer_place **out)
{
    size_t size = comm ? (size_t)tr_comm_size(comm) : 1;
    struct trainer_place *places = *out = tr_alloc_zero(size, sizeof *places);
    if (!places) return TR_ENOMEM;
    struct trainer_place *own = &places[comm ? tr_comm_rank(comm) : 0];
    if (comm)
        snprintf(own->host, sizeof own->host, "%s", tr_comm_host(comm, tr_comm_rank(comm)));
    else if (gethostname(own->host, sizeof own->host) != 0)
        snprintf(own->host, sizeof own->host, "unknown");
    snprintf(own->device, sizeof own->device, "%s", device->description);
    snprintf(own->holder, sizeof own->holder, "%s", holder->description);
    own->threads = device->threads;
    own->memory = (int64_t)memory;
    if (!comm) return TR_OK;
    tr_status status = tr_comm_exchange(comm, places, sizeof *places, "places");
    for (size_t r = 0; r < size; r++) end_strings(&places[r]);
    return status;
}

tr_status tr_trainer_place(const tr_trainer *trainer, int rank, struct tr_train_place *out)
{
    const struct tr_model *model = trainer->job->model;
    struct tr_placement part;
    assert(rank >= 0 && rank < (trainer->crew.comm ? tr_comm_size(trainer->crew.comm) : 1));
    tr_strategy_placement(trainer->variables.strategy, rank, &part);
    const struct trainer_place *place = &trainer->host.places[rank];
    bool computes = part.first_layer < part.end_layer && part.first_microbatch < part.end_microbatch;
    const struct tr_train_place facts = {
        .host = place->host,
        .role = part.role,
        .device = place->device,
        .holder = place->holder,
        .threads = (int)place->threads,
        .memory = place->memory,
        .first_microbatch = part.first_microbatch,
        .end_microbatch = part.end_microbatch,
        .first_layer = computes ? model->layers[part.first_layer].name : "",
        .last_layer = computes ? model->layers[part.end_layer - 1].name : "",
        .parameters = part.parameters,
        .updates = part.updates,
    };
    return tr_sized_give(&facts, sizeof facts, "TR_TRAIN_PLACE_INIT", out);
}
