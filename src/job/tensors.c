#include "job/tensors.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>

struct tr_stored_tensor tr_parameter_tensor(const struct tr_parameter *parameter, const char *name,
                                            float *arena)
{
    struct tr_stored_tensor tensor = {
        .name = name,
        .dtype = TR_DTYPE_F32,
        .rank = parameter->shape.rank,
        .data = arena ? arena + parameter->offset : NULL,
    };
    for (int i = 0; i < tensor.rank; i++) tensor.shape[i] = parameter->shape.size[i];
    return tensor;
}

void tr_state_name(const struct tr_parameter *parameter, const char *arena, char name[TR_STATE_NAME])
{
    snprintf(name, TR_STATE_NAME, "%s.%s", arena, parameter->name);
}

/* Replaces parameters by the moving averages of the checkpoint. */
static tr_status load_averages(const struct tr_model *model, tr_checkpoint *checkpoint, float *arena)
{
    const tr_safetensors *file = tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        char name[TR_STATE_NAME];
        tr_state_name(parameter, tr_arena_names[TR_ARENA_EMA], name);
        const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
        if (!entry) continue;
        struct tr_stored_tensor expected = tr_parameter_tensor(parameter, name, arena);
        char have[TR_STORED_TEXT], want[TR_STORED_TEXT];
        if (!tr_stored_alike(&entry->tensor, &expected))
            return tr_fail(TR_EMISMATCH, "checkpoint \"%s\": tensor \"%s\" is %s, the network has %s",
                           tr_checkpoint_path(checkpoint), name, tr_stored_describe(&entry->tensor, have),
                           tr_stored_describe(&expected, want));
        TR_TRY(tr_checkpoint_read(checkpoint, TR_CHECKPOINT_OPTIMIZER, entry, arena + parameter->offset));
    }
    return TR_OK;
}

static tr_status add_piece(void *user, const void *piece, size_t bytes)
{
    tr_sha256_add(user, piece, bytes);
    return TR_OK;
}

static tr_status feed_stored(void *user, const struct tr_parameter *parameter, tr_sha256 *hash)
{
    tr_checkpoint *checkpoint = user;
    const struct tr_safetensors_entry *entry =
        tr_safetensors_find(tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_PARAMETERS), parameter->name);
    if (!entry) return tr_fail(TR_EMISMATCH, "the checkpoint has no parameter \"%s\"", parameter->name);
    return tr_checkpoint_stream(checkpoint, TR_CHECKPOINT_PARAMETERS, entry, add_piece, hash);
}

tr_status tr_job_stored_hash(const struct tr_job *job, tr_checkpoint *checkpoint, char hex[TR_SHA256_TEXT])
{
    return tr_model_hash_fed(job->model, feed_stored, checkpoint, hex);
}

tr_status tr_job_load_parameters(const struct tr_job *job, tr_checkpoint *checkpoint, bool use_average,
                                 float *arena)
{
    const struct tr_model *model = job->model;
    struct tr_stored_tensor *tensors = tr_alloc((size_t)model->parameter_count, sizeof *tensors);
    if (!tensors) return TR_ENOMEM;
    int count = 0;
    for (int i = 0; i < model->parameter_count; i++)
        if (!model->parameters[i].base)
            tensors[count++] = tr_parameter_tensor(&model->parameters[i], model->parameters[i].name, arena);
    tr_status status = tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, tensors, count);
    tr_free(tensors);
    if (status != TR_OK || !use_average) return status;
    return load_averages(model, checkpoint, arena);
}
