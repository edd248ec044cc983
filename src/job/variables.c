#include "job/variables.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/timeline.h"
#include "base/team.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

const char *const tr_arena_names[TR_ARENAS] = {"parameters", "m", "v", "ema", "outer"};

/* Neighbouring parameters that are updated alike, as one call. */
struct group {
    struct tr_op_update update; /* pointers and scalars set */
    int64_t offset;
};

struct tr_variables {
    tr_device *device;
    const struct tr_model *model;
    const struct tr_optimizer *optimizer;
    struct tr_staging arena[TR_ARENAS];
    struct tr_variables_part part;
    float *shared;                   /* memory of ranks for all arenas, or NULL */
    bool filled;                     /* another rank gives the shared parameters their first values */
    bool gives;                      /* this one does so, from a device with memory of its own */
    struct tr_step_scalars *scalars; /* device */
    struct tr_step_scalars next[2];  /* on their way there, those of two steps in turn */
    tr_event sent[2];                /* which they are behind */
    bool used[2];
    int turn;
    struct tr_staging squares;       /* per parameter that is optimized */
    float *norm;                     /* device: their root */
    int64_t square_count;
    struct group *groups;
    int group_count;
    size_t memory;
    tr_update_watcher watcher; /* or NULL */
    void *watcher_user;
};

static tr_status allocate(tr_variables *variables, size_t bytes, void *out)
{
    void *memory;
    TR_TRY(tr_device_alloc(variables->device, bytes, &memory));
    *(void **)out = memory;
    variables->memory += bytes;
    return TR_OK;
}

static tr_status fill(tr_variables *variables, float *at, int64_t count)
{
    struct tr_op_fill zero = {count, 0, at};
    return tr_device_fill(variables->device, &zero);
}

struct range {
    int64_t begin, end; /* floats */
};

/* What is kept of an arena. */
static struct range range_of(const tr_variables *variables, enum tr_arena arena)
{
    const struct tr_variables_part *part = &variables->part;
    return arena == TR_ARENA_PARAMETERS ? (struct range){part->begin, part->end}
                                        : (struct range){part->state_begin, part->state_end};
}

/* Gaps between parameters hold zeros; what is between them is for the caller to write. */
static tr_status fill_gaps(tr_variables *variables, float *arena, struct range range)
{
    const struct tr_model *model = variables->model;
    for (int i = 0; i < model->parameter_count; i++) {
        int64_t from = model->parameters[i].offset + model->parameters[i].count;
        int64_t to = i + 1 < model->parameter_count ? model->parameters[i + 1].offset : model->arena_floats;
        if (from < range.begin) from = range.begin;
        if (to > range.end) to = range.end;
        if (to > from) TR_TRY(fill(variables, arena + from, to - from));
    }
    return TR_OK;
}

static tr_status allocate_arena(tr_variables *variables, enum tr_arena arena, float *window)
{
    int64_t floats = variables->model->arena_floats;
    struct range range = range_of(variables, arena);
    TR_TRY(tr_staging_make(variables->device, floats, window, &variables->arena[arena]));
    variables->memory += (size_t)(range.end - range.begin) * sizeof(float);
    if (variables->shared) return TR_OK; /* it is zero */
    /* Memory is touched first by what fills it: parameters and averages at once, moments here. */
    if (arena == TR_ARENA_PARAMETERS || arena == TR_ARENA_EMA)
        return fill_gaps(variables, variables->arena[arena].data, range);
    if (range.begin == range.end) return TR_OK;
    return fill(variables, variables->arena[arena].data + range.begin, range.end - range.begin);
}

static bool alike(const struct tr_op_update *a, const struct tr_op_update *b)
{
    return a->rule == b->rule && a->nesterov == b->nesterov && a->clip_norm == b->clip_norm &&
           a->rate_factor == b->rate_factor && a->beta1 == b->beta1 && a->beta2 == b->beta2 &&
           a->epsilon == b->epsilon && a->decay == b->decay && a->l2 == b->l2 &&
           a->clip_value == b->clip_value;
}

/* The part of layer i's parameters' statistics that a new batch takes. */
static float follow_of(const struct tr_model *model, int parameter)
{
    for (int i = 0; i < model->layer_count; i++)
        for (int k = 0; k < model->layers[i].parameter_count; k++)
            if (model->layers[i].parameter[k] == parameter) return model->layers[i].statistic_momentum;
    return 0;
}

/* Gaps between parameters belong to the group: zeros stay zeros under every rule. Frozen parameters belong to
   none. */
static tr_status make_groups(tr_variables *variables)
{
    const struct tr_model *model = variables->model;
    variables->groups = tr_alloc_zero((size_t)model->parameter_count, sizeof *variables->groups);
    if (!variables->groups) return TR_ENOMEM;
    unsigned group_states = 0;
    bool apart = true; /* from the last group, by a frozen parameter */
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (parameter->pace.frozen) {
            apart = true;
            continue;
        }
        unsigned states = tr_optimizer_states(variables->optimizer, parameter->kind);
        struct tr_op_update update;
        tr_optimizer_update(variables->optimizer, parameter->kind, &parameter->pace, follow_of(model, i),
                            &update);
        struct group *group = apart ? NULL : &variables->groups[variables->group_count - 1];
        apart = false;
        if (!group || !alike(&group->update, &update) || states != group_states) {
            group = &variables->groups[variables->group_count++];
            *group = (struct group){update, parameter->offset};
            group_states = states;
            group->update.w = variables->arena[TR_ARENA_PARAMETERS].data + parameter->offset;
            group->update.m =
                states & TR_STATE_M ? variables->arena[TR_ARENA_M].data + parameter->offset : NULL;
            group->update.v =
                states & TR_STATE_V ? variables->arena[TR_ARENA_V].data + parameter->offset : NULL;
            group->update.ema =
                states & TR_STATE_EMA ? variables->arena[TR_ARENA_EMA].data + parameter->offset : NULL;
            group->update.scalars = variables->scalars;
        }
        group->update.count = parameter->offset + parameter->count - group->offset;
    }
    return TR_OK;
}

static unsigned states_of(const struct tr_optimizer *optimizer)
{
    return tr_optimizer_states(optimizer, TR_PARAMETER_WEIGHT) |
           tr_optimizer_states(optimizer, TR_PARAMETER_BIAS);
}

int tr_variables_arenas(const struct tr_optimizer *optimizer)
{
    return 1 + __builtin_popcount(states_of(optimizer) & (TR_STATE_M | TR_STATE_V | TR_STATE_EMA));
}

static tr_status allocate_optimizer(tr_variables *variables)
{
    static const struct {
        unsigned bit;
        enum tr_arena arena;
    } kept[] = {{TR_STATE_M, TR_ARENA_M}, {TR_STATE_V, TR_ARENA_V}, {TR_STATE_EMA, TR_ARENA_EMA}};
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
    return make_groups(variables);
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
            "device %s has memory of its own, which is lost with its process; hold the parameters on "
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
    tr_free(variables->groups);
    tr_free(variables);
    *handle = NULL;
}

tr_status tr_variables_keep_outer(tr_variables *variables)
{
    if (variables->arena[TR_ARENA_OUTER].data) return TR_OK;
    return allocate_arena(variables, TR_ARENA_OUTER, NULL);
}

bool tr_variables_are_whole(const tr_variables *variables)
{
    return variables->part.begin == 0 && variables->part.end == variables->model->arena_floats;
}

bool tr_variables_keep(const tr_variables *variables, enum tr_arena arena, int64_t begin, int64_t end)
{
    struct range range = range_of(variables, arena);
    return begin < range.end && range.begin < end;
}

void tr_variables_trim_arena(tr_variables *variables, enum tr_arena arena)
{
    int64_t floats = variables->model->arena_floats;
    struct range range = range_of(variables, arena);
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

struct initialization {
    const struct tr_model *model;
    uint64_t seed;
    struct range range;
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
    struct initialization job = {variables->model, seed, range_of(variables, TR_ARENA_PARAMETERS), values};
    tr_team *team;
    TR_TRY(tr_team_create(variables->device->threads, &team));
    tr_team_run(team, initialize_share, &job);
    tr_team_destroy(&team);
    return TR_OK;
}

/* Initial parameters by way of the host, for devices with memory of their own. */
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
        struct range range = range_of(variables, (enum tr_arena)i);
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
    struct range range = range_of(variables, TR_ARENA_EMA);
    if (range.begin == range.end) return TR_OK;
    struct tr_op_scale copy = {range.end - range.begin, 1, parameters + range.begin, average + range.begin};
    TR_TRY(tr_device_scale(variables->device, &copy));
    return tr_variables_give(variables);
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

static tr_status send_scalars(tr_variables *variables, int64_t step, size_t bytes)
{
    int turn = variables->turn ^= 1;
    struct tr_step_scalars *next = &variables->next[turn];
    /* Those of the step before the last; mostly they are long there. */
    if (variables->used[turn]) TR_TRY(tr_device_wait_for(variables->device, variables->sent[turn]));
    variables->used[turn] = true;
    tr_optimizer_scalars(variables->optimizer, step, next);
    TR_TRY(tr_device_to_device(variables->device, variables->scalars, next, bytes));
    return tr_device_record(variables->device, &variables->sent[turn]);
}

tr_status tr_variables_begin_step(tr_variables *variables, int64_t step)
{
    return send_scalars(variables, step, sizeof(struct tr_step_scalars));
}

tr_status tr_variables_begin_behind(tr_variables *variables, int64_t step)
{
    /* What was judged, which follows, stays. */
    return send_scalars(variables, step, offsetof(struct tr_step_scalars, nonfinite));
}

tr_status tr_variables_measure_squares(tr_variables *variables, const float *gradient)
{
    const struct tr_model *model = variables->model;
    struct range range = range_of(variables, TR_ARENA_PARAMETERS);
    int64_t square = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (parameter->kind == TR_PARAMETER_STATISTIC) continue;
        struct tr_op_sum_squares sum = {parameter->count, gradient + parameter->offset,
                                        variables->squares.data + square++};
        if (parameter->offset < range.begin || parameter->offset >= range.end) continue;
        if (parameter->pace.frozen) /* what is not learned from does not count */
            TR_TRY(fill(variables, sum.out, 1));
        else
            TR_TRY(tr_device_sum_squares(variables->device, &sum));
    }
    return TR_OK;
}

tr_status tr_variables_join_squares(tr_variables *variables)
{
    struct tr_op_clip_scale scale = {
        .count = variables->square_count,
        .max_norm = variables->optimizer->clip_norm > 0 ? variables->optimizer->clip_norm : __builtin_inff(),
        .squares = variables->squares.data,
        .norm = variables->norm,
        .scalars = variables->scalars,
    };
    return tr_device_clip_scale(variables->device, &scale);
}

tr_status tr_variables_measure(tr_variables *variables, const float *gradient)
{
    TR_TRY(tr_variables_measure_squares(variables, gradient));
    return tr_variables_join_squares(variables);
}

tr_status tr_variables_open_squares(tr_variables *variables, const struct tr_staging **out)
{
    *out = &variables->squares;
    return tr_staging_open(&variables->squares);
}

tr_status tr_variables_norm(tr_variables *variables, float *norm)
{
    TR_TRY(tr_device_to_host(variables->device, norm, variables->norm, sizeof *norm));
    return tr_device_wait(variables->device);
}

static float *behind(float *pointer, int64_t floats)
{
    return pointer ? pointer + floats : NULL;
}

void tr_variables_watch(tr_variables *variables, tr_update_watcher watcher, void *user)
{
    variables->watcher = watcher;
    variables->watcher_user = user;
}

/* The floats [from, to) of a group. */
static struct tr_op_update part_of(const struct group *group, int64_t from, int64_t to)
{
    struct tr_op_update update = group->update;
    update.count = to - from;
    update.w = behind(update.w, from);
    update.m = behind(update.m, from);
    update.v = behind(update.v, from);
    update.ema = behind(update.ema, from);
    return update;
}

static tr_status update_range(tr_variables *variables, const float *gradient, int64_t begin, int64_t end)
{
    if (variables->watcher) TR_TRY(variables->watcher(variables->watcher_user, gradient, begin, end));
    for (int i = 0; i < variables->group_count; i++) {
        const struct group *group = &variables->groups[i];
        int64_t from = begin > group->offset ? begin - group->offset : 0;
        int64_t to = end - group->offset < group->update.count ? end - group->offset : group->update.count;
        if (from >= to) continue;
        struct tr_op_update update = part_of(group, from, to);
        update.grad = gradient + (group->offset + from - begin);
        TR_TRY(tr_device_update(variables->device, &update));
    }
    return TR_OK;
}

tr_status tr_variables_update(tr_variables *variables, const float *gradient, int64_t begin, int64_t end)
{
    tr_span_begin(TR_ACTIVITY_UPDATE, "update");
    tr_status status = update_range(variables, gradient, begin, end);
    tr_span_end();
    return status;
}

bool tr_variables_update_of(const tr_variables *variables, int64_t begin, int64_t end,
                            struct tr_op_update *out)
{
    for (int i = 0; i < variables->group_count && !variables->watcher; i++) {
        const struct group *group = &variables->groups[i];
        if (begin < group->offset || end > group->offset + group->update.count) continue;
        *out = part_of(group, begin - group->offset, end - group->offset);
        return true;
    }
    return false;
}

tr_status tr_variables_hold(tr_variables *variables, const float *loss, bool norm)
{
    struct tr_op_hold by_loss = {1, loss, variables->scalars},
                      by_norm = {1, variables->norm, variables->scalars};
    if (loss) TR_TRY(tr_device_hold(variables->device, &by_loss));
    return norm ? tr_device_hold(variables->device, &by_norm) : TR_OK;
}

tr_status tr_variables_ask(tr_variables *variables, struct tr_variables_answer *answer)
{
    TR_TRY(tr_device_to_host(variables->device, &answer->norm, variables->norm, sizeof answer->norm));
    return tr_device_to_host(variables->device, &answer->scalars, variables->scalars, sizeof answer->scalars);
}

tr_status tr_variables_nonfinite(tr_variables *variables, bool *nonfinite)
{
    struct tr_step_scalars told;
    TR_TRY(tr_device_to_host(variables->device, &told, variables->scalars, sizeof told));
    TR_TRY(tr_device_wait(variables->device));
    *nonfinite = told.nonfinite != 0;
    return TR_OK;
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
