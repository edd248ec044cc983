#include "strategy/parameter_server/store.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

/* Floats that are updated and copied at a time: with gradient and moments they stay in the second-level
 * cache. */
#define PIECE (16 << 10)

struct ps_store {
    tr_device *device;
    const struct tr_job *job;
    tr_variables *variables;
    int64_t begin, end;
    float *sum; /* an arena, or NULL */
};

tr_status ps_store_create(tr_device *device, const struct tr_job *job, tr_variables *variables, int64_t begin,
                          int64_t end, bool sums, ps_store **out)
{
    *out = NULL;
    if (!tr_device_host_view(device, tr_variables_arena(variables, TR_ARENA_PARAMETERS)))
        return tr_fail(TR_EUNSUPPORTED,
                       "a parameter server holds its parameters in host memory, which %s lacks",
                       device->description);
    ps_store *store = tr_alloc_zero(1, sizeof *store);
    if (!store) return TR_ENOMEM;
    *store = (struct ps_store){device, job, variables, begin, end, NULL};
    /* Of the arena only the share is touched, and so takes memory. */
    if (sums) store->sum = tr_alloc_aligned((size_t)job->model->arena_floats + 1, sizeof(float));
    if (!sums || store->sum) {
        *out = store;
        return TR_OK;
    }
    tr_free(store);
    return TR_ENOMEM;
}

void ps_store_destroy(ps_store **handle)
{
    ps_store *store = *handle;
    if (!store) return;
    tr_free(store->sum);
    tr_free(store);
    *handle = NULL;
}

static tr_status scale(const ps_store *store, float factor, const float *from, float *to)
{
    struct tr_op_scale op = {store->end - store->begin, factor, from + store->begin, to + store->begin};
    return op.count > 0 ? tr_device_scale(store->device, &op) : TR_OK;
}

tr_status ps_store_add(ps_store *store, float *gradient, float factor, bool first)
{
    TR_TRY(scale(store, factor, gradient, first ? store->sum : gradient));
    float *sum = store->sum + store->begin;
    struct tr_op_add op = {store->end - store->begin, sum, gradient + store->begin, sum};
    if (!first && op.count > 0) TR_TRY(tr_device_add(store->device, &op));
    return tr_device_wait(store->device); /* the gradient's memory is for the next one */
}

tr_status ps_store_finish_sum(ps_store *store, float factor, float **gradient)
{
    TR_TRY(scale(store, factor, store->sum, store->sum));
    TR_TRY(tr_device_wait(store->device));
    *gradient = store->sum;
    return TR_OK;
}

double ps_store_squares(const ps_store *store, const float *gradient)
{
    const struct tr_model *model = store->job->model;
    double sum = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        int64_t from = parameter->offset, to = parameter->offset + parameter->count;
        if (parameter->kind == TR_PARAMETER_STATISTIC) continue;
        if (from < store->begin) from = store->begin;
        if (to > store->end) to = store->end;
        for (int64_t k = from; k < to; k++) sum += (double)gradient[k] * (double)gradient[k];
    }
    return sum;
}

tr_status ps_store_update(ps_store *store, int64_t count, const float *gradient, float clip, float *give,
                          bool *poisoned)
{
    const float *parameters = tr_variables_arena(store->variables, TR_ARENA_PARAMETERS);
    int64_t piece = PIECE * (int64_t)store->device->threads;
    struct tr_step_scalars scalars;
    tr_optimizer_scalars(&store->job->optimizer, count, &scalars);
    scalars.clip_scale = clip;
    TR_TRY(
        tr_device_to_device(store->device, tr_variables_scalars(store->variables), &scalars, sizeof scalars));
    for (int64_t from = store->begin, to; from < store->end; from = to) {
        to = store->end - from < piece || !give ? store->end : from + piece;
        TR_TRY(tr_variables_update(store->variables, gradient, from, to));
        if (!give) continue;
        TR_TRY(tr_device_wait(store->device));
        memcpy(give + from, parameters + from, (size_t)(to - from) * sizeof *give);
    }
    return tr_variables_nonfinite(store->variables, poisoned);
}

void ps_store_copy(const ps_store *store, enum tr_arena arena, float *to)
{
    const float *from = tr_variables_arena(store->variables, arena);
    memcpy(to + store->begin, from + store->begin, (size_t)(store->end - store->begin) * sizeof *to);
}
