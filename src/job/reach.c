#include "job/reach.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_reach {
    tr_variables *variables;
    tr_device *reader, *holder;
    bool direct;
    enum tr_arena arena; /* last renewed */
    int64_t floats;
    /* Without direct reach: */
    float *parameters;               /* of the reader */
    struct tr_step_scalars *scalars; /* of the reader */
    float *gradient;                 /* of the holder */
    float *between;                  /* of the host, on the way */
};

bool tr_reach_is_direct(const tr_device *reader, const tr_device *holder)
{
    return reader == holder || (tr_device_host_view(reader, reader) && tr_device_host_view(holder, holder));
}

static tr_status make_copies(tr_reach *reach)
{
    size_t bytes = (size_t)(reach->floats + 1) * sizeof(float);
    TR_TRY(tr_device_alloc(reach->reader, bytes, (void **)&reach->parameters));
    TR_TRY(tr_device_alloc(reach->reader, sizeof *reach->scalars, (void **)&reach->scalars));
    TR_TRY(tr_device_alloc(reach->holder, bytes, (void **)&reach->gradient));
    reach->between = tr_alloc_aligned((size_t)reach->floats + 1, sizeof(float));
    return reach->between ? TR_OK : TR_ENOMEM;
}

tr_status tr_reach_create(tr_variables *variables, tr_device *reader, tr_reach **out)
{
    tr_reach *reach = *out = tr_alloc_zero(1, sizeof *reach);
    if (!reach) return TR_ENOMEM;
    *reach = (tr_reach){
        .variables = variables,
        .reader = reader,
        .holder = tr_variables_device(variables),
        .floats = tr_variables_floats(variables),
    };
    reach->direct = tr_reach_is_direct(reader, reach->holder);
    tr_status status = reach->direct ? TR_OK : make_copies(reach);
    if (status != TR_OK) tr_reach_destroy(out);
    return status;
}

void tr_reach_destroy(tr_reach **handle)
{
    tr_reach *reach = *handle;
    if (!reach) return;
    tr_device_free(reach->reader, reach->parameters);
    tr_device_free(reach->reader, reach->scalars);
    tr_device_free(reach->holder, reach->gradient);
    tr_free(reach->between);
    tr_free(reach);
    *handle = NULL;
}

/* From one device to another, by way of the host. */
static tr_status carry(tr_device *from, const void *source, tr_device *to, void *target, void *between,
                       size_t bytes)
{
    TR_TRY(tr_device_to_host(from, between, source, bytes));
    TR_TRY(tr_device_wait(from));
    TR_TRY(tr_device_to_device(to, target, between, bytes));
    return tr_device_wait(to);
}

tr_status tr_reach_renew(tr_reach *reach, enum tr_arena arena)
{
    struct tr_step_scalars scalars;
    reach->arena = arena;
    if (reach->direct) return TR_OK;
    TR_TRY(carry(reach->holder, tr_variables_arena(reach->variables, arena), reach->reader, reach->parameters,
                 reach->between, (size_t)reach->floats * sizeof(float)));
    return carry(reach->holder, tr_variables_scalars(reach->variables), reach->reader, reach->scalars,
                 &scalars, sizeof scalars);
}

const float *tr_reach_parameters(const tr_reach *reach)
{
    return reach->direct ? tr_variables_arena(reach->variables, reach->arena) : reach->parameters;
}

struct tr_step_scalars *tr_reach_scalars(const tr_reach *reach)
{
    return reach->direct ? tr_variables_scalars(reach->variables) : reach->scalars;
}

tr_status tr_reach_gradient(tr_reach *reach, const float *gradient, int64_t count, const float **out)
{
    *out = reach->direct ? gradient : reach->gradient;
    if (reach->direct) return TR_OK;
    return carry(reach->reader, gradient, reach->holder, reach->gradient, reach->between,
                 (size_t)count * sizeof(float));
}
