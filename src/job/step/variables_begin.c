/* The first values of variables: parameters, which this process or another one of its host fills, and
 * averages.
 */
#include "job/step/variables_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/team.h"

struct initialization {
    const struct tr_model *model;
    uint64_t seed;
    struct variables_range range;
    float *values;
};

static void initialize_share(void *user, int member, int size)
{
    struct initialization *job = user;
    tr_model_initialize_range(job->model, job->seed, job->range.begin, job->range.end, member, size,
                              job->values);
}

/* Fills `values`, host memory, with a team of as many threads as the device has. */
static tr_status initialize_host(const tr_variables *variables, uint64_t seed, float *values)
{
    struct initialization job = {variables->model, seed, variables_range_of(variables, TR_ARENA_PARAMETERS),
                                 values};
    tr_team *team;
    TR_TRY(tr_team_create(variables->device->threads, &team));
    tr_team_run(team, initialize_share, &job);
    tr_team_destroy(&team);
    return TR_OK;
}

/* Initial parameters by way of the host, for devices with separate memory. */
static tr_status initialize_by_copy(tr_variables *variables, uint64_t seed)
{
    float *values = tr_alloc_aligned((size_t)variables->model->arena_floats + 1, sizeof *values);
    if (!values) return TR_ENOMEM;
    tr_status status = initialize_host(variables, seed, values);
    if (status == TR_OK) status = tr_variables_load(variables, TR_ARENA_PARAMETERS, values);
    tr_free(values);
    return status;
}

void tr_variables_let_fill(tr_variables *variables, bool fills)
{
    bool direct = tr_staging_is_direct(&variables->arena[TR_ARENA_PARAMETERS]);
    variables->filled = !fills && direct;
    variables->gives = fills && !direct;
}

bool tr_variables_fills(const tr_variables *variables)
{
    return !variables->filled;
}

bool tr_variables_fills_state(const tr_variables *variables)
{
    return !variables->filled || !variables->shared;
}

tr_status tr_variables_initialize(tr_variables *variables, uint64_t seed)
{
    float *parameters = variables->arena[TR_ARENA_PARAMETERS].data;
    if (variables->filled) return TR_OK;
    if (!tr_device_host_view(variables->device, parameters)) return initialize_by_copy(variables, seed);
    return initialize_host(variables, seed, parameters);
}

tr_status tr_variables_give(tr_variables *variables)
{
    for (int i = 0; i < TR_ARENAS && variables->gives; i++) {
        const struct tr_staging *arena = &variables->arena[i];
        struct variables_range range = variables_range_of(variables, (enum tr_arena)i);
        if (arena->memory != TR_MEMORY_WINDOW || tr_staging_is_direct(arena)) continue;
        TR_TRY(tr_staging_to_host(arena, range.begin, range.end));
    }
    return variables->gives ? tr_device_wait(variables->device) : TR_OK;
}

tr_status tr_variables_begin_ema(tr_variables *variables)
{
    const float *parameters = variables->arena[TR_ARENA_PARAMETERS].data;
    float *average = variables->arena[TR_ARENA_EMA].data;
    if (!average || !tr_variables_fills_state(variables)) return TR_OK;
    struct variables_range range = variables_range_of(variables, TR_ARENA_EMA);
    if (range.begin == range.end) return TR_OK;
    struct tr_op_scale copy = {range.end - range.begin, 1, parameters + range.begin, average + range.begin};
    TR_TRY(tr_device_scale(variables->device, &copy));
    return tr_variables_give(variables);
}
