/* The steps of variables: scalars, norm, update, and whether it succeeded. */
#include "job/step/variables_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/timeline.h"

#include <assert.h>
#include <stddef.h>

static bool alike(const struct tr_op_update *a, const struct tr_op_update *b)
{
    return a->rule == b->rule && a->nesterov == b->nesterov && a->clip_norm == b->clip_norm &&
           a->rate_factor == b->rate_factor && a->beta1 == b->beta1 && a->beta2 == b->beta2 &&
           a->epsilon == b->epsilon && a->decay == b->decay && a->l2 == b->l2 &&
           a->clip_value == b->clip_value;
}

/* The weight of a new batch in the running statistics of layer i. */
static float follow_of(const struct tr_model *model, int parameter)
{
    for (int i = 0; i < model->layer_count; i++)
        for (int k = 0; k < model->layers[i].parameter_count; k++)
            if (model->layers[i].parameter[k] == parameter) return model->layers[i].statistic_momentum;
    return 0;
}

/* Gaps between parameters belong to the group: zeros stay zeros under every rule. Frozen parameters belong to
   none. */
tr_status variables_make_groups(tr_variables *variables)
{
    const struct tr_model *model = variables->model;
    variables->groups = tr_alloc_zero((size_t)model->parameter_count, sizeof *variables->groups);
    if (!variables->groups) return TR_ENOMEM;
    unsigned group_states = 0;
    bool apart = true; /* separated from the last group by a frozen parameter */
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
        struct variables_group *group = apart ? NULL : &variables->groups[variables->group_count - 1];
        struct tr_whole_update whole;
        int64_t in, out;
        tr_model_hidden_matrix(model, i, &in, &out);
        apart = tr_optimizer_whole(variables->optimizer, parameter->kind, &parameter->pace, in, out, &whole);
        if (!group || apart || !alike(&group->update, &update) || states != group_states) {
            group = &variables->groups[variables->group_count++];
            *group = (struct variables_group){update, parameter->offset, whole, in, out};
            group_states = states;
            group->update.w = variables->arena[TR_ARENA_PARAMETERS].data + parameter->offset;
            group->update.m =
                states & TR_STATE_M ? variables->arena[TR_ARENA_M].data + parameter->offset : NULL;
            group->update.v =
                states & TR_STATE_V ? variables->arena[TR_ARENA_V].data + parameter->offset : NULL;
            group->update.vmax =
                states & TR_STATE_VMAX ? variables->arena[TR_ARENA_VMAX].data + parameter->offset : NULL;
            group->update.ema =
                states & TR_STATE_EMA ? variables->arena[TR_ARENA_EMA].data + parameter->offset : NULL;
            group->update.scalars = variables->scalars;
        }
        group->update.count = parameter->offset + parameter->count - group->offset;
    }
    return TR_OK;
}

static tr_status send_scalars(tr_variables *variables, int64_t step, size_t bytes)
{
    int turn = variables->turn ^= 1;
    struct tr_step_scalars *next = &variables->next[turn];
    /* Waits for the scalars of two steps before; mostly they were copied long ago. */
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

tr_status tr_variables_begin_behind(tr_variables *variables, int64_t step, bool skips)
{
    static const int32_t no = 0;
    /* The results of judging, which come after it in the structure, do not change. */
    TR_TRY(send_scalars(variables, step, offsetof(struct tr_step_scalars, nonfinite)));
    return skips ? tr_device_to_device(variables->device, &variables->scalars->held, &no, sizeof no) : TR_OK;
}

tr_status tr_variables_measure_squares(tr_variables *variables, const float *gradient)
{
    const struct tr_model *model = variables->model;
    struct variables_range range = variables_range_of(variables, TR_ARENA_PARAMETERS);
    int64_t square = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (parameter->kind == TR_PARAMETER_STATISTIC) continue;
        struct tr_op_sum_squares sum = {parameter->count, gradient + parameter->offset,
                                        variables->squares.data + square++};
        if (parameter->offset < range.begin || parameter->offset >= range.end) continue;
        if (parameter->pace.frozen) /* parameters that are not learned do not count */
            TR_TRY(variables_clear(variables, sum.out, 1));
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

void tr_variables_observe(tr_variables *variables, tr_update_observer observer, void *user)
{
    variables->observer = observer;
    variables->observer_user = user;
}

/* The floats [from, to) of a group. */
static struct tr_op_update part_of(const struct variables_group *group, int64_t from, int64_t to)
{
    struct tr_op_update update = group->update;
    update.count = to - from;
    update.w = behind(update.w, from);
    update.m = behind(update.m, from);
    update.v = behind(update.v, from);
    update.vmax = behind(update.vmax, from);
    update.ema = behind(update.ema, from);
    return update;
}

static tr_status update_range(tr_variables *variables, const float *gradient, int64_t begin, int64_t end)
{
    if (variables->observer) TR_TRY(variables->observer(variables->observer_user, gradient, begin, end));
    for (int i = 0; i < variables->group_count; i++) {
        const struct variables_group *group = &variables->groups[i];
        int64_t from = begin > group->offset ? begin - group->offset : 0;
        int64_t to = end - group->offset < group->update.count ? end - group->offset : group->update.count;
        if (from >= to) continue;
        if (group->whole.kind != TR_WHOLE_NONE) {
            assert(from == 0 && to == group->update.count);
            TR_TRY(variables_update_whole(variables, group, gradient + (group->offset - begin)));
            continue;
        }
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
    for (int i = 0; i < variables->group_count && !variables->observer; i++) {
        const struct variables_group *group = &variables->groups[i];
        if (begin < group->offset || end > group->offset + group->update.count) continue;
        if (group->whole.kind != TR_WHOLE_NONE) return false;
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
