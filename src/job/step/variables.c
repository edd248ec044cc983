/* Variables: their memory. */
#include "job/step/variables_internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <string.h>

const char *const tr_arena_names[TR_ARENAS] = {"parameters", "m", "v", "vmax", "ema"};

static tr_status allocate(tr_variables *variables, size_t bytes, void *out)
{
    void *memory;
    TR_TRY(tr_device_alloc(variables->device, bytes, &memory));
    *(void **)out = memory;
    variables->memory += bytes;
    return TR_OK;
}

tr_status variables_clear(tr_variables *variables, float *at, int64_t count)
{
    struct tr_op_fill zero = {count, 0, at};
    return tr_device_fill(variables->device, &zero);
}

/* Gaps between parameters are set to zero; the caller writes the parameters. */
static tr_status fill_gaps(tr_variables *variables, float *arena, struct variables_range range)
{
    const struct tr_model *model = variables->model;
    for (int i = 0; i < model->parameter_count; i++) {
        int64_t from = model->parameters[i].offset + model->parameters[i].count;
        int64_t to = i + 1 < model->parameter_count ? model->parameters[i + 1].offset : model->arena_floats;
        if (from < range.begin) from = range.begin;
        if (to > range.end) to = range.end;
        if (to > from) TR_TRY(variables_clear(variables, arena + from, to - from));
    }
    return TR_OK;
}

static tr_status allocate_arena(tr_variables *variables, enum tr_arena arena, float *window)
{
    int64_t floats = variables->model->arena_floats;
    struct variables_range range = variables_range_of(variables, arena);
    TR_TRY(tr_staging_make(variables->device, floats, window, &variables->arena[arena]));
    /* A device with its own memory needs addresses for a whole arena. */
    int64_t touched = tr_device_memory(variables->device) > 0 ? floats : range.end - range.begin;
    variables->memory += (size_t)touched * sizeof(float);
    /* Memory that ranks share is zero already, and one of them may be filling it. */
    if (window && tr_staging_is_direct(&variables->arena[arena])) return TR_OK;
    /* The code that fills memory touches it first: elsewhere for parameters and averages, here for
       moments. */
    if (arena == TR_ARENA_PARAMETERS || arena == TR_ARENA_EMA)
        return fill_gaps(variables, variables->arena[arena].data, range);
    if (range.begin == range.end) return TR_OK;
    return variables_clear(variables, variables->arena[arena].data + range.begin, range.end - range.begin);
}

static unsigned states_of(const struct tr_optimizer *optimizer)
{
    return tr_optimizer_states(optimizer, TR_PARAMETER_WEIGHT) |
           tr_optimizer_states(optimizer, TR_PARAMETER_BIAS);
}

int tr_variables_arenas(const struct tr_optimizer *optimizer)
{
    return 1 + __builtin_popcount(states_of(optimizer) & TR_STATE_ANY);
}

static tr_status allocate_optimizer(tr_variables *variables)
{
    static const struct {
        unsigned bit;
        enum tr_arena arena;
    } kept[] = {{TR_STATE_M, TR_ARENA_M},
                {TR_STATE_V, TR_ARENA_V},
                {TR_STATE_VMAX, TR_ARENA_VMAX},
                {TR_STATE_EMA, TR_ARENA_EMA}};
    unsigned states = states_of(variables->optimizer);
    float *window = variables->shared;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (!(states & kept[i].bit)) continue;
        if (window) window += variables->model->arena_floats;
        TR_TRY(allocate_arena(variables, kept[i].arena, window));
    }
    for (int i = 0; i < variables->model->parameter_count; i++)
        variables->square_count += variables->model->parameters[i].kind != TR_PARAMETER_STATISTIC;
    TR_TRY(tr_staging_make(variables->device, variables->square_count, NULL, &variables->squares));
    variables->memory += tr_staging_memory(&variables->squares);
    TR_TRY(allocate(variables, sizeof(float), &variables->norm));
    TR_TRY(variables_make_groups(variables));
    if (variables->optimizer->sam > 0) {
        size_t arena = (size_t)variables->model->arena_floats * sizeof(float);
        TR_TRY(allocate(variables, arena + sizeof(float), &variables->around));
        TR_TRY(allocate(variables, 2 * sizeof(float), &variables->around_squares));
    }
    variables_plan_scratch(variables->groups, variables->group_count, &variables->scratch);
    if (variables->scratch.floats == 0) return TR_OK;
    return allocate(variables, (size_t)variables->scratch.floats * sizeof(float), &variables->scratch.memory);
}

static tr_status create(tr_device *device, const struct tr_model *model, const struct tr_optimizer *optimizer,
                        const struct tr_variables_part *part, float *window, bool all, tr_variables **out)
{
    assert(part->begin <= part->state_begin && part->state_begin <= part->state_end &&
           part->state_end <= part->end && part->end <= model->arena_floats);
    tr_variables *variables = tr_alloc_zero(1, sizeof *variables);
    if (!variables) return TR_ENOMEM;
    *variables = (tr_variables){.device = device, .model = model, .optimizer = optimizer, .part = *part};
    if (all) variables->shared = window;
    tr_status status = allocate(variables, sizeof *variables->scalars, &variables->scalars);
    if (status == TR_OK) status = allocate_arena(variables, TR_ARENA_PARAMETERS, window);
    if (status == TR_OK && optimizer) status = allocate_optimizer(variables);
    if (status != TR_OK) {
        tr_variables_destroy(&variables);
        return status;
    }
    *out = variables;
    return TR_OK;
}

tr_status tr_variables_create_part(tr_device *device, const struct tr_model *model,
                                   const struct tr_optimizer *optimizer, const struct tr_variables_part *part,
                                   float *window, tr_variables **out)
{
    return create(device, model, optimizer, part, window, false, out);
}

tr_status tr_variables_create_shared(tr_device *device, const struct tr_model *model,
                                     const struct tr_optimizer *optimizer, float *window, tr_variables **out)
{
    struct tr_variables_part whole = {.end = model->arena_floats, .state_end = model->arena_floats};
    *out = NULL;
    if (!tr_device_adopt(device, window))
        return tr_fail(
            TR_EUNSUPPORTED,
            "device %s has separate memory, which is lost with its process; hold the parameters on "
            "the cpu",
            device->name);
    return create(device, model, optimizer, &whole, window, true, out);
}

tr_status tr_variables_create(tr_device *device, const struct tr_model *model,
                              const struct tr_optimizer *optimizer, float *window, tr_variables **out)
{
    struct tr_variables_part whole = {.end = model->arena_floats, .state_end = model->arena_floats};
    return tr_variables_create_part(device, model, optimizer, &whole, window, out);
}

void tr_variables_destroy(tr_variables **handle)
{
    tr_variables *variables = *handle;
    if (!variables) return;
    for (int i = 0; i < TR_ARENAS; i++) tr_staging_release(&variables->arena[i]);
    tr_device_free(variables->device, variables->scalars);
    tr_staging_release(&variables->squares);
    tr_device_free(variables->device, variables->norm);
    tr_device_free(variables->device, variables->scratch.memory);
    tr_device_free(variables->device, variables->around);
    tr_device_free(variables->device, variables->around_squares);
    tr_free(variables->groups);
    tr_free(variables);
    *handle = NULL;
}

bool tr_variables_are_whole(const tr_variables *variables)
{
    return variables->part.begin == 0 && variables->part.end == variables->model->arena_floats;
}

bool tr_variables_keep(const tr_variables *variables, enum tr_arena arena, int64_t begin, int64_t end)
{
    struct variables_range range = variables_range_of(variables, arena);
    return begin < range.end && range.begin < end;
}

void tr_variables_trim_arena(tr_variables *variables, enum tr_arena arena)
{
    int64_t floats = variables->model->arena_floats;
    struct variables_range range = variables_range_of(variables, arena);
    float *values = variables->arena[arena].data;
    if (!values) return;
    tr_device_discard(variables->device, values, (size_t)range.begin * sizeof *values);
    tr_device_discard(variables->device, values + range.end, (size_t)(floats - range.end) * sizeof *values);
}

void tr_variables_trim(tr_variables *variables)
{
    for (int i = 0; i < TR_ARENAS; i++) tr_variables_trim_arena(variables, (enum tr_arena)i);
}

float *tr_variables_arena(const tr_variables *variables, enum tr_arena arena)
{
    return variables->arena[arena].data;
}

tr_status tr_variables_open(tr_variables *variables, enum tr_arena arena, const struct tr_staging **out)
{
    struct tr_staging *buffer = &variables->arena[arena];
    *out = buffer->data ? buffer : NULL;
    return buffer->data ? tr_staging_open(buffer) : TR_OK;
}

tr_device *tr_variables_device(const tr_variables *variables)
{
    return variables->device;
}

int64_t tr_variables_floats(const tr_variables *variables)
{
    return variables->model->arena_floats;
}

struct tr_step_scalars *tr_variables_scalars(const tr_variables *variables)
{
    return variables->scalars;
}

tr_status tr_variables_load(tr_variables *variables, enum tr_arena arena, const float *values)
{
    size_t bytes = (size_t)variables->model->arena_floats * sizeof(float);
    TR_TRY(tr_device_to_device(variables->device, variables->arena[arena].data, values, bytes));
    return tr_device_wait(variables->device);
}

tr_status tr_variables_store(tr_variables *variables, enum tr_arena arena, float *values)
{
    size_t bytes = (size_t)variables->model->arena_floats * sizeof(float);
    TR_TRY(tr_device_to_host(variables->device, values, variables->arena[arena].data, bytes));
    return tr_device_wait(variables->device);
}

tr_status tr_variables_complete_ema(tr_variables *variables)
{
    const struct tr_model *model = variables->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (parameter->kind != TR_PARAMETER_STATISTIC) continue;
        struct tr_op_scale copy = {parameter->count, 1,
                                   variables->arena[TR_ARENA_PARAMETERS].data + parameter->offset,
                                   variables->arena[TR_ARENA_EMA].data + parameter->offset};
        TR_TRY(tr_device_scale(variables->device, &copy));
    }
    return TR_OK;
}

tr_status tr_variables_hash(tr_variables *variables, char hex[TR_SHA256_TEXT])
{
    const float *view = tr_device_host_view(variables->device, variables->arena[TR_ARENA_PARAMETERS].data);
    if (view) return tr_model_hash(variables->model, view, hex);
    float *copy = tr_alloc((size_t)variables->model->arena_floats + 1, sizeof *copy);
    if (!copy) return TR_ENOMEM;
    tr_status status = tr_variables_store(variables, TR_ARENA_PARAMETERS, copy);
    if (status == TR_OK) status = tr_model_hash(variables->model, copy, hex);
    tr_free(copy);
    return status;
}

size_t tr_variables_memory(const tr_variables *variables)
{
    return variables->memory;
}
