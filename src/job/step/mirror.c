#include "job/step/mirror.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_mirror {
    tr_variables *variables;
    tr_device *reader, *holder;
    bool direct;
    enum tr_arena arena; /* last renewed */
    int64_t floats;
    /* Where there is no direct access: */
    float *parameters;               /* of the reader */
    struct tr_step_scalars *scalars; /* of the reader */
    float *gradient;                 /* of the holder */
    /* In transfer, on the host: parameters or a gradient, and scalars; pinned. Devices may be reading what
       they were given last. */
    float *between;
    struct tr_step_scalars *scalars_between;
    tr_device *pinner; /* device for which these are pinned */
    struct taker {
        tr_device *device;
        tr_event taken;
        bool used;
    } by_reader, by_holder;
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
    mirror->by_reader.device = mirror->reader;
    mirror->by_holder.device = mirror->holder;
    mirror->pinner = mirror->reader->class->host_memory ? mirror->holder : mirror->reader;
    TR_TRY(tr_device_alloc_pinned(mirror->pinner, bytes, (void **)&mirror->between));
    return tr_device_alloc_pinned(mirror->pinner, sizeof *mirror->scalars_between,
                                  (void **)&mirror->scalars_between);
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

static tr_status wait_for(const struct taker *taker)
{
    return taker->used ? tr_device_wait_for(taker->device, taker->taken) : TR_OK;
}

/* Waits until the last transfer was read, which was mostly long ago. */
static tr_status begin(const tr_mirror *mirror)
{
    TR_TRY(wait_for(&mirror->by_reader));
    return wait_for(&mirror->by_holder);
}

void tr_mirror_destroy(tr_mirror **handle)
{
    tr_mirror *mirror = *handle;
    struct tr_failure how;
    if (!mirror) return;
    tr_failure_keep(&how, TR_OK);
    (void)begin(mirror);
    tr_failure_restore(&how);
    tr_device_free(mirror->reader, mirror->parameters);
    tr_device_free(mirror->reader, mirror->scalars);
    tr_device_free(mirror->holder, mirror->gradient);
    tr_device_free_pinned(mirror->pinner, mirror->between);
    tr_device_free_pinned(mirror->pinner, mirror->scalars_between);
    tr_free(mirror);
    *handle = NULL;
}

/* Everything in transfer has been given to its reader. */
static tr_status end(struct taker *taker)
{
    taker->used = true;
    return tr_device_record(taker->device, &taker->taken);
}

tr_status tr_mirror_renew(tr_mirror *mirror, enum tr_arena arena)
{
    const size_t bytes = (size_t)mirror->floats * sizeof(float), few = sizeof *mirror->scalars;
    mirror->arena = arena;
    if (mirror->direct) return TR_OK;
    TR_TRY(begin(mirror));
    const float *parameters = tr_variables_arena(mirror->variables, arena);
    const struct tr_step_scalars *scalars = tr_variables_scalars(mirror->variables);
    TR_TRY(tr_device_to_host(mirror->holder, mirror->between, parameters, bytes));
    TR_TRY(tr_device_to_host(mirror->holder, mirror->scalars_between, scalars, few));
    TR_TRY(tr_device_wait(mirror->holder));
    TR_TRY(tr_device_to_device(mirror->reader, mirror->parameters, mirror->between, bytes));
    TR_TRY(tr_device_to_device(mirror->reader, mirror->scalars, mirror->scalars_between, few));
    return end(&mirror->by_reader);
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
    const size_t bytes = (size_t)count * sizeof *gradient;
    *out = mirror->direct ? gradient : mirror->gradient;
    if (mirror->direct) return TR_OK;
    TR_TRY(begin(mirror));
    TR_TRY(tr_device_to_host(mirror->reader, mirror->between, gradient, bytes));
    TR_TRY(tr_device_wait(mirror->reader));
    TR_TRY(tr_device_to_device(mirror->holder, mirror->gradient, mirror->between, bytes));
    return end(&mirror->by_holder);
}
