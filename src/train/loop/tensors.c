#include "train/loop/tensors.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

void trainer_tensors_release(struct trainer_tensors *tensors)
{
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++) {
        tr_free(tensors->tensor[i]);
        tr_free(tensors->origin[i]);
    }
    for (int i = 0; tensors->copy && i < tensors->arenas; i++) tr_free(tensors->copy[i]);
    tr_free(tensors->copy);
    tr_free(tensors->host);
    tr_free(tensors->name);
}

/* ---- arenas ---- */

/* An arena of the strategy, else NULL. */
static struct tr_strategy_arena *own_arena(const tr_trainer *trainer, int arena)
{
    return arena < TR_ARENAS ? NULL : tr_strategy_arena(trainer->variables.strategy, arena - TR_ARENAS);
}

static const char *arena_name(const tr_trainer *trainer, int arena)
{
    const struct tr_strategy_arena *own = own_arena(trainer, arena);
    return own ? own->name : tr_arena_names[arena];
}

/* In memory of the device; NULL: there is none on this rank. */
static float *arena_values(const tr_trainer *trainer, int arena)
{
    const struct tr_strategy_arena *own = own_arena(trainer, arena);
    return own ? own->values : tr_variables_arena(trainer->variables.arenas, (enum tr_arena)arena);
}

/* Whether the run keeps this arena for this parameter, on some rank. */
static bool keeps(const tr_trainer *trainer, int arena, const struct tr_parameter *parameter)
{
    static const unsigned bits[TR_ARENAS] = {0, TR_STATE_M, TR_STATE_V, TR_STATE_VMAX, TR_STATE_EMA};
    const struct tr_strategy_arena *own = own_arena(trainer, arena);
    int like = own ? (int)own->like : arena;
    if (like == TR_ARENAS) return parameter->kind != TR_PARAMETER_STATISTIC;
    if (like == TR_ARENA_PARAMETERS) return true;
    return (tr_optimizer_states(&trainer->job->optimizer, parameter->kind) & bits[like]) != 0;
}

/* `loads`: numbers are read from a file; else those of the device are used, where the root has all and
   they are not collected piece by piece. */
static tr_status host_arenas(tr_trainer *trainer, struct trainer_tensors *tensors, bool loads)
{
    size_t floats = (size_t)trainer->job->model->arena_floats;
    tensors->arenas = TR_ARENAS + tr_strategy_arena_count(trainer->variables.strategy);
    tensors->host = tr_alloc_zero((size_t)tensors->arenas, sizeof *tensors->host);
    tensors->copy = tr_alloc_zero((size_t)tensors->arenas, sizeof *tensors->copy);
    if (!tensors->host || !tensors->copy) return TR_ENOMEM;
    if (!loads && tr_strategy_saves_pieces(trainer->variables.strategy)) return TR_OK;
    for (int i = 0; i < tensors->arenas; i++) {
        float *values = arena_values(trainer, i);
        if (!values) continue;
        if (tr_device_host_view(trainer->variables.holder, values)) {
            tensors->host[i] = values;
            continue;
        }
        tensors->host[i] = tensors->copy[i] = tr_alloc_zero(floats + 1, sizeof(float));
        if (!tensors->copy[i]) return TR_ENOMEM;
        if (!loads) TR_TRY(tr_variables_store(trainer->variables.arenas, (enum tr_arena)i, tensors->copy[i]));
    }
    return TR_OK;
}

tr_status trainer_tensors_take(tr_trainer *trainer, struct trainer_tensors *tensors)
{
    size_t bytes = (size_t)trainer->job->model->arena_floats * sizeof(float);
    for (int i = 0; i < tensors->arenas; i++) {
        const struct tr_strategy_arena *own = own_arena(trainer, i);
        if (!tensors->copy[i] || (own && !own->begun)) continue;
        TR_TRY(tr_device_to_device(trainer->variables.holder, arena_values(trainer, i), tensors->copy[i],
                                   bytes));
    }
    return tr_device_wait(trainer->variables.holder);
}

/* ---- tensors ---- */

/* Adds a tensor with its place: without data if it is only read through, since this rank keeps none of it,
   or another process fills it. */
static void add_tensor(tr_trainer *trainer, enum tr_checkpoint_group group,
                       const struct tr_parameter *parameter, int arena, const char *name, bool loads,
                       struct trainer_tensors *out)
{
    int64_t begin = parameter->offset, end = begin + parameter->count, number = out->count[group]++;
    struct tr_stored_tensor *tensor = &out->tensor[group][number];
    *tensor = tr_parameter_tensor(parameter, name, out->host[arena]);
    bool takes = true;
    if (arena < TR_ARENAS) {
        bool fills = arena == TR_ARENA_PARAMETERS ? tr_variables_fills(trainer->variables.arenas)
                                                  : tr_variables_fills_state(trainer->variables.arenas);
        takes = fills && tr_variables_keep(trainer->variables.arenas, (enum tr_arena)arena, begin, end);
    }
    if (loads && !takes) tensor->data = NULL;
    out->origin[group][number] = (struct trainer_origin){arena, begin, end};
}

/* `most`: of what the optimizer and the strategy keep. */
static tr_status make_lists(const struct tr_model *model, size_t most, struct trainer_tensors *out)
{
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        size_t count = g == TR_CHECKPOINT_PARAMETERS ? (size_t)model->parameter_count : most;
        out->tensor[g] = tr_alloc(count, sizeof *out->tensor[g]);
        out->origin[g] = tr_alloc(count, sizeof *out->origin[g]);
        if (!out->tensor[g] || !out->origin[g]) return TR_ENOMEM;
    }
    out->name = tr_alloc(most, sizeof *out->name);
    return out->name ? TR_OK : TR_ENOMEM;
}

/* Adds this run's state of a parameter besides its values. */
static void add_state(tr_trainer *trainer, const struct tr_parameter *parameter, bool loads,
                      struct trainer_tensors *out)
{
    for (int arena = TR_ARENA_M; arena < out->arenas; arena++) {
        const struct tr_strategy_arena *own = own_arena(trainer, arena);
        bool there = own ? !loads || own->begun : arena_values(trainer, arena) != NULL;
        if (!there || !keeps(trainer, arena, parameter)) continue;
        char *name = out->name[out->count[TR_CHECKPOINT_OPTIMIZER]];
        tr_state_name(parameter, arena_name(trainer, arena), name);
        add_tensor(trainer, TR_CHECKPOINT_OPTIMIZER, parameter, arena, name, loads, out);
    }
}

/* ---- a checkpoint of another strategy ---- */

/* A checkpoint decides about an arena of the strategy: where it is missing there, it begins as without a
   checkpoint. */
static void find_own(tr_trainer *trainer, const tr_safetensors *file)
{
    const struct tr_model *model = trainer->job->model;
    char name[TR_STATE_NAME];
    for (int a = 0; a < tr_strategy_arena_count(trainer->variables.strategy); a++) {
        struct tr_strategy_arena *own = tr_strategy_arena(trainer->variables.strategy, a);
        for (int i = 0; i < model->parameter_count && !own->begun; i++) {
            tr_state_name(&model->parameters[i], own->name, name);
            own->begun = tr_safetensors_find(file, name) != NULL;
        }
    }
}

static const struct tr_parameter *parameter_named(const struct tr_model *model, const char *name)
{
    for (int i = 0; i < model->parameter_count; i++)
        if (strcmp(model->parameters[i].name, name) == 0) return &model->parameters[i];
    return NULL;
}

/* Whether an arena of this run's strategy has the tensor. */
static bool is_taken(const tr_trainer *trainer, const char *tensor, const char *parameter)
{
    size_t length = (size_t)(parameter - tensor) - 1;
    for (int a = 0; a < tr_strategy_arena_count(trainer->variables.strategy); a++) {
        const char *name = tr_strategy_arena(trainer->variables.strategy, a)->name;
        if (strlen(name) == length && strncmp(name, tensor, length) == 0) return true;
    }
    return false;
}

/* Own arenas of other strategies, or other options, are read and discarded. */
static void add_others(tr_trainer *trainer, const tr_safetensors *file, struct trainer_tensors *out)
{
    const enum tr_checkpoint_group group = TR_CHECKPOINT_OPTIMIZER;
    for (int64_t i = 0; i < tr_safetensors_count(file); i++) {
        const char *name = tr_safetensors_at(file, i)->tensor.name;
        const char *of = tr_strategy_arena_parameter(name);
        const struct tr_parameter *parameter = of ? parameter_named(trainer->job->model, of) : NULL;
        if (!parameter || is_taken(trainer, name, of)) continue;
        out->tensor[group][out->count[group]] = tr_parameter_tensor(parameter, name, NULL);
        out->origin[group][out->count[group]++] = (struct trainer_origin){0};
    }
}

tr_status trainer_tensors_list(tr_trainer *trainer, const tr_checkpoint *checkpoint,
                               struct trainer_tensors *out)
{
    const struct tr_model *model = trainer->job->model;
    const tr_safetensors *file =
        checkpoint ? tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER) : NULL;
    TR_TRY(host_arenas(trainer, out, file != NULL));
    if (file) find_own(trainer, file);
    size_t others = file ? (size_t)tr_safetensors_count(file) : 0;
    TR_TRY(make_lists(model, (size_t)model->parameter_count * (size_t)(out->arenas - 1) + others, out));
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        add_tensor(trainer, TR_CHECKPOINT_PARAMETERS, parameter, TR_ARENA_PARAMETERS, parameter->name,
                   file != NULL, out);
        add_state(trainer, parameter, file != NULL, out);
    }
    if (file) add_others(trainer, file, out);
    return TR_OK;
}
