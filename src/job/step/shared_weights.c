#include "job/step/shared_weights.h"

#include "base/alloc.h"
#include "base/fail.h"

tr_status tr_shared_weights_make(tr_comm *comm, int tag, tr_device *device, const struct tr_model *model,
                                 const tr_pass *pass, tr_layer_rank rank_of, const void *user,
                                 struct tr_shared_weights *out)
{
    struct tr_pass_tie tie;
    *out = (struct tr_shared_weights){.comm = comm, .device = device, .model = model, .tag = tag};
    while (tr_pass_tie(pass, out->count, &tie)) {
        if (!tr_grow(&out->item, out->count, sizeof *out->item)) return TR_ENOMEM;
        struct tr_shared_weight *item = &out->item[out->count++];
        *item = (struct tr_shared_weight){.tie = tie,
                                          .peer = rank_of(user, tie.lends ? tie.borrower : tie.lender)};
        if (tie.lends) continue;
        TR_TRY(tr_staging_make(device, tie.floats, NULL, &item->copy));
        TR_TRY(tr_staging_open(&item->copy));
    }
    return TR_OK;
}

void tr_shared_weights_release(struct tr_shared_weights *shared)
{
    for (int i = 0; i < shared->count; i++) tr_staging_release(&shared->item[i].copy);
    tr_free(shared->item);
    *shared = (struct tr_shared_weights){0};
}

bool tr_shared_weights_cancel(struct tr_shared_weights *shared)
{
    bool ended = true;
    for (int i = 0; i < shared->count; i++)
        ended = tr_comm_cancel(shared->comm, &shared->item[i].ticket) && ended;
    return ended;
}

void tr_shared_weights_lend(const struct tr_shared_weights *shared, tr_pass *pass)
{
    for (int i = 0; i < shared->count; i++)
        if (!shared->item[i].tie.lends)
            tr_pass_lend(pass, shared->item[i].tie.borrower, shared->item[i].copy.data);
}

/* The lender's side: points to the parameter in the present arena. */
static tr_status aim(const struct tr_shared_weights *shared, struct tr_shared_weight *item,
                     const float *parameters)
{
    const struct tr_layer *lender = &shared->model->layers[item->tie.lender];
    const int64_t offset = shared->model->parameters[lender->parameter[0]].offset;
    float *data = (float *)(uintptr_t)(parameters + offset);
    if (item->copy.data == data) return TR_OK;
    tr_staging_release(&item->copy);
    tr_staging_over(shared->device, item->tie.floats, data, &item->copy);
    return tr_staging_open(&item->copy);
}

/* Copies the weights that this side lends to the memory of messages. */
static tr_status fetch(struct tr_shared_weights *shared, const float *parameters)
{
    bool lends = false;
    for (int i = 0; i < shared->count; i++) {
        struct tr_shared_weight *item = &shared->item[i];
        if (!item->tie.lends) continue;
        lends = true;
        TR_TRY(aim(shared, item, parameters));
        TR_TRY(tr_staging_to_host(&item->copy, 0, item->tie.floats));
    }
    return lends ? tr_device_wait(shared->device) : TR_OK;
}

static tr_status begin(struct tr_shared_weights *shared, struct tr_shared_weight *item)
{
    const size_t bytes = (size_t)item->tie.floats * sizeof(float);
    if (!item->tie.lends)
        return tr_comm_receive(shared->comm, item->peer, shared->tag, item->copy.host, bytes,
                               "shared weights", &item->ticket);
    return tr_comm_send_numbers(shared->comm, item->peer, shared->tag, item->copy.host, bytes,
                                "shared weights", &item->ticket);
}

tr_status tr_shared_weights_hand(struct tr_shared_weights *shared, const float *parameters)
{
    TR_TRY(fetch(shared, parameters));
    for (int i = 0; i < shared->count; i++) TR_TRY(begin(shared, &shared->item[i]));
    for (int i = 0; i < shared->count; i++) {
        struct tr_shared_weight *item = &shared->item[i];
        if (item->tie.lends) continue;
        TR_TRY(tr_comm_wait(shared->comm, &item->ticket));
        TR_TRY(tr_staging_to_device(&item->copy, 0, item->tie.floats));
    }
    return TR_OK;
}

tr_status tr_shared_weights_wait(struct tr_shared_weights *shared)
{
    for (int i = 0; i < shared->count; i++)
        if (shared->item[i].ticket) TR_TRY(tr_comm_wait(shared->comm, &shared->item[i].ticket));
    return TR_OK;
}
