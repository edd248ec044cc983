#include "strategy/parameter_server/store.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/program.h"

#include <string.h>

/* Floats that are updated and copied at a time: with gradient and moments they fit the second-level cache. */
#define PIECE (16 << 10)

struct ps_store {
    tr_device *device; /* that holds the variables */
    const struct tr_job *job;
    tr_variables *variables;
    int64_t begin, end;
    struct tr_staging sum;      /* an arena, or nothing */
    struct tr_staging incoming; /* for gradients that the device cannot read in place */
    /* The chosen gradient: for the device, and for the host, where known. */
    const float *data, *host;
};

tr_status ps_store_create(const struct tr_job *job, tr_variables *variables, int64_t begin, int64_t end,
                          bool sums, ps_store **out)
{
    ps_store *store = *out = tr_alloc_zero(1, sizeof *store);
    if (!store) return TR_ENOMEM;
    tr_device *device = tr_variables_device(variables);
    *store = (ps_store){.device = device, .job = job, .variables = variables, .begin = begin, .end = end};
    /* Only the shard of a host arena is touched, and so takes memory. */
    int64_t floats = job->model->arena_floats;
    tr_status status = sums ? tr_staging_make(device, floats, NULL, &store->sum) : TR_OK;
    if (status == TR_OK && sums) status = tr_staging_open(&store->sum);
    if (status == TR_OK && !tr_device_adopt(device, store))
        status = tr_staging_make(device, floats, NULL, &store->incoming);
    if (status != TR_OK) ps_store_destroy(out);
    return status;
}

void ps_store_destroy(ps_store **handle)
{
    ps_store *store = *handle;
    if (!store) return;
    tr_staging_release(&store->sum);
    tr_staging_release(&store->incoming);
    tr_free(store);
    *handle = NULL;
}

/* The shard of a host gradient, where the device can use it. */
static tr_status lend(ps_store *store, float *gradient, float **out)
{
    float *incoming = store->incoming.data;
    *out = incoming ? incoming : gradient;
    if (!incoming) return TR_OK;
    return tr_device_to_device(store->device, incoming + store->begin, gradient + store->begin,
                               (size_t)(store->end - store->begin) * sizeof *gradient);
}

static tr_status scale(const ps_store *store, float factor, const float *from, float *to)
{
    struct tr_op_scale op = {store->end - store->begin, factor, from + store->begin, to + store->begin};
    return op.count > 0 ? tr_device_scale(store->device, &op) : TR_OK;
}

tr_status ps_store_add(ps_store *store, float *gradient, float factor, bool first)
{
    float *lent;
    TR_TRY(lend(store, gradient, &lent));
    TR_TRY(scale(store, factor, lent, first ? store->sum.data : lent));
    float *sum = store->sum.data + store->begin;
    struct tr_op_add op = {store->end - store->begin, sum, lent + store->begin, sum};
    if (!first && op.count > 0) TR_TRY(tr_device_add(store->device, &op));
    return tr_device_wait(store->device); /* the gradient's memory is free for the next one */
}

tr_status ps_store_choose(ps_store *store, float *gradient)
{
    float *lent;
    TR_TRY(lend(store, gradient, &lent));
    store->data = lent;
    store->host = gradient;
    return TR_OK;
}

tr_status ps_store_choose_sum(ps_store *store, float factor)
{
    TR_TRY(scale(store, factor, store->sum.data, store->sum.data));
    TR_TRY(tr_staging_to_host(&store->sum, store->begin, store->end));
    store->data = store->sum.data;
    store->host = store->sum.host;
    return tr_device_wait(store->device);
}

tr_status ps_store_squares(ps_store *store, double *out)
{
    const struct tr_model *model = store->job->model;
    *out = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        int64_t from = parameter->offset, to = parameter->offset + parameter->count;
        if (parameter->kind == TR_PARAMETER_STATISTIC) continue;
        if (from < store->begin) from = store->begin;
        if (to > store->end) to = store->end;
        for (int64_t k = from; k < to; k++) *out += (double)store->host[k] * (double)store->host[k];
    }
    return TR_OK;
}

tr_status ps_store_update(ps_store *store, int64_t count, float clip, float *give, bool *poisoned)
{
    const struct tr_staging *parameters;
    int64_t piece = PIECE * (int64_t)store->device->threads;
    struct tr_step_scalars scalars;
    TR_TRY(tr_variables_open(store->variables, TR_ARENA_PARAMETERS, &parameters));
    tr_optimizer_scalars(&store->job->optimizer, count, &scalars);
    scalars.clip_scale = clip;
    TR_TRY(
        tr_device_to_device(store->device, tr_variables_scalars(store->variables), &scalars, sizeof scalars));
    for (int64_t from = store->begin, to; from < store->end; from = to) {
        to = store->end - from < piece || !give ? store->end : from + piece;
        to = tr_variables_cut(store->job->model, &store->job->optimizer, to);
        if (to <= from) to = store->end; /* a parameter that is larger than a piece */
        TR_TRY(tr_variables_update(store->variables, store->data + from, from, to));
        if (!give) continue;
        TR_TRY(tr_staging_to_host(parameters, from, to));
        TR_TRY(tr_device_wait(store->device));
        memcpy(give + from, parameters->host + from, (size_t)(to - from) * sizeof *give);
        tr_program_moved(2 * (to - from), 0);
    }
    return tr_variables_nonfinite(store->variables, poisoned);
}

tr_status ps_store_copy(const ps_store *store, enum tr_arena which, float *to)
{
    const struct tr_staging *arena;
    TR_TRY(tr_variables_open(store->variables, which, &arena));
    TR_TRY(tr_staging_to_host(arena, store->begin, store->end));
    TR_TRY(tr_device_wait(store->device));
    memcpy(to, arena->host + store->begin, (size_t)(store->end - store->begin) * sizeof *to);
    tr_program_moved(2 * (store->end - store->begin), 0);
    return TR_OK;
}
