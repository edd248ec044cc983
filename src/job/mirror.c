#include "job/mirror.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_mirror {
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

bool tr_mirror_is_direct(const tr_device *reader, const tr_device *holder)
{
    return reader == holder || (tr_device_host_view(reader, reader) && tr_device_host_view(holder, holder));
}

static tr_status make_copies(tr_mirror *mirror)
{
    size_t bytes = (size_t)(mirror->floats + 1) * sizeof(float);
    TR_TRY(tr_device_alloc(mirror->reader, bytes, (void **)&mirror->parameters));
    TR_TRY(tr_device_alloc(mirror->reader, sizeof *mirror->scalars, (void **)&mirror->scalars));
    TR_TRY(tr_device_alloc(mirror->holder, bytes, (void **)&mirror->gradient));
    mirror->between = tr_alloc_aligned((size_t)mirror->floats + 1, sizeof(float));
    return mirror->between ? TR_OK : TR_ENOMEM;
}

tr_status tr_mirror_create(tr_variables *variables, tr_device *reader, tr_mirror **out)
{
    tr_mirror *mirror = *out = tr_alloc_zero(1, sizeof *mirror);
    if (!mirror) return TR_ENOMEM;
    *mirror = (tr_mirror){
        .variables = variables,
        .reader = reader,
        .holder = tr_variables_device(variables),
        .floats = tr_variables_floats(variables),
    };
    mirror->direct = tr_mirror_is_direct(reader, mirror->holder);
    tr_status status = mirror->direct ? TR_OK : make_copies(mirror);
    if (status != TR_OK) tr_mirror_destroy(out);
    return status;
}

void tr_mirror_destroy(tr_mirror **handle)
{
    tr_mirror *mirror = *handle;
    if (!mirror) return;
    tr_device_free(mirror->reader, mirror->parameters);
    tr_device_free(mirror->reader, mirror->scalars);
    tr_device_free(mirror->holder, mirror->gradient);
    tr_free(mirror->between);
    tr_free(mirror);
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

tr_status tr_mirror_renew(tr_mirror *mirror, enum tr_arena arena)
{
    struct tr_step_scalars scalars;
    mirror->arena = arena;
    if (mirror->direct) return TR_OK;
    TR_TRY(carry(mirror->holder, tr_variables_arena(mirror->variables, arena), mirror->reader,
                 mirror->parameters, mirror->between, (size_t)mirror->floats * sizeof(float)));
    return carry(mirror->holder, tr_variables_scalars(mirror->variables), mirror->reader, mirror->scalars,
                 &scalars, sizeof scalars);
}

const float *tr_mirror_parameters(const tr_mirror *mirror)
{
    return mirror->direct ? tr_variables_arena(mirror->variables, mirror->arena) : mirror->parameters;
}

struct tr_step_scalars *tr_mirror_scalars(const tr_mirror *mirror)
{
    return mirror->direct ? tr_variables_scalars(mirror->variables) : mirror->scalars;
}

tr_status tr_mirror_gradient(tr_mirror *mirror, const float *gradient, int64_t count, const float **out)
{
    *out = mirror->direct ? gradient : mirror->gradient;
    if (mirror->direct) return TR_OK;
    return carry(mirror->reader, gradient, mirror->holder, mirror->gradient, mirror->between,
                 (size_t)count * sizeof(float));
}
