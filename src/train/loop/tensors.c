#include "train/loop/tensors.h"

#include "base/alloc.h"
#include "base/fail.h"

void trainer_tensors_release(struct trainer_tensors *tensors)
{
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++) {
        tr_free(tensors->tensor[i]);
        tr_free(tensors->origin[i]);
    }
    for (int i = 0; i < TR_ARENAS; i++) tr_free(tensors->copy[i]);
    tr_free(tensors->name);
}

/* Whether the run keeps this arena for this parameter. */
static bool keeps(const tr_trainer *trainer, enum tr_arena arena, const struct tr_parameter *parameter)
{
    static const unsigned bits[TR_ARENAS] = {0, TR_STATE_M, TR_STATE_V, TR_STATE_EMA};
    if (arena == TR_ARENA_OUTER) return parameter->kind != TR_PARAMETER_STATISTIC;
    return (tr_optimizer_states(&trainer->job->optimizer, parameter->kind) & bits[arena]) != 0;
}

static tr_status host_arenas(tr_trainer *trainer, struct trainer_tensors *tensors, bool store)
{
    for (int i = 0; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(trainer->variables.arenas, (enum tr_arena)i);
        if (!arena) continue;
        if (tr_device_host_view(trainer->variables.holder, arena)) {
            tensors->host[i] = arena;
            continue;
        }
        size_t floats = (size_t)trainer->job->model->arena_floats;
        tensors->host[i] = tensors->copy[i] = tr_alloc_zero(floats + 1, sizeof(float));
        if (!tensors->copy[i]) return TR_ENOMEM;
        if (store) TR_TRY(tr_variables_store(trainer->variables.arenas, (enum tr_arena)i, tensors->copy[i]));
    }
    return TR_OK;
}

/* Whether a checkpoint has the tensor. */
static bool has_tensor(const tr_checkpoint *checkpoint, const struct tr_parameter *parameter,
                       enum tr_arena arena)
{
    char name[TR_STATE_NAME];
    tr_state_name(parameter, arena, name);
    return tr_safetensors_find(tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER), name) != NULL;
}

/* A strategy's own momentum goes by what is written: a run under another strategy reads it into nothing, and
   where it is missing it begins as zeros. Decides which it is for a checkpoint to load. */
static tr_status match_outer(tr_trainer *trainer, const tr_checkpoint *checkpoint,
                             struct trainer_tensors *tensors)
{
    const struct tr_model *model = trainer->job->model;
    bool written = false;
    for (int i = 0; i < model->parameter_count; i++)
        written |= has_tensor(checkpoint, &model->parameters[i], TR_ARENA_OUTER);
    if (!written) tensors->host[TR_ARENA_OUTER] = NULL;
    if (!written || tensors->host[TR_ARENA_OUTER]) return TR_OK;
    float *nothing = tr_alloc_zero((size_t)model->arena_floats + 1, sizeof *nothing);
    tensors->host[TR_ARENA_OUTER] = tensors->copy[TR_ARENA_OUTER] = nothing;
    return nothing ? TR_OK : TR_ENOMEM;
}

/* Adds a tensor with its place: none for one to be loaded of which nothing is kept
   here, or that another process fills. */
static void add_tensor(tr_trainer *trainer, enum tr_checkpoint_group group,
                       const struct tr_parameter *parameter, enum tr_arena arena, const char *name,
                       bool loads, struct trainer_tensors *out)
{
    int64_t begin = parameter->offset, end = begin + parameter->count, number = out->count[group]++;
    struct tr_stored_tensor *tensor = &out->tensor[group][number];
    *tensor = tr_parameter_tensor(parameter, name, out->host[arena]);
    bool fills = arena == TR_ARENA_PARAMETERS ? tr_variables_fills(trainer->variables.arenas)
                                              : tr_variables_fills_state(trainer->variables.arenas);
    bool takes = fills && tr_variables_keep(trainer->variables.arenas, arena, begin, end);
    if (loads && !takes) tensor->data = NULL;
    out->origin[group][number] = (struct trainer_origin){arena, begin, end};
}

static tr_status make_lists(const struct tr_model *model, struct trainer_tensors *out)
{
    size_t parameters = (size_t)model->parameter_count;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        size_t most = g == TR_CHECKPOINT_PARAMETERS ? parameters : parameters * (TR_ARENAS - 1);
        out->tensor[g] = tr_alloc(most, sizeof *out->tensor[g]);
        out->origin[g] = tr_alloc(most, sizeof *out->origin[g]);
        if (!out->tensor[g] || !out->origin[g]) return TR_ENOMEM;
    }
    out->name = tr_alloc(parameters * (TR_ARENAS - 1), sizeof *out->name);
    return out->name ? TR_OK : TR_ENOMEM;
}

tr_status trainer_tensors_list(tr_trainer *trainer, const tr_checkpoint *checkpoint,
                               struct trainer_tensors *out)
{
    const struct tr_model *model = trainer->job->model;
    TR_TRY(host_arenas(trainer, out, checkpoint == NULL));
    if (checkpoint) TR_TRY(match_outer(trainer, checkpoint, out));
    TR_TRY(make_lists(model, out));
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        add_tensor(trainer, TR_CHECKPOINT_PARAMETERS, parameter, TR_ARENA_PARAMETERS, parameter->name,
                   checkpoint != NULL, out);
        for (int a = TR_ARENA_M; a < TR_ARENAS; a++) {
            enum tr_arena arena = (enum tr_arena)a;
            if (!out->host[arena] || !keeps(trainer, arena, parameter)) continue;
            char *name = out->name[out->count[TR_CHECKPOINT_OPTIMIZER]];
            tr_state_name(parameter, arena, name);
            add_tensor(trainer, TR_CHECKPOINT_OPTIMIZER, parameter, arena, name, checkpoint != NULL, out);
        }
    }
    return TR_OK;
}
