/* The parameters of a trainer, one by one, for programs. */
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "base/sized.h"
#include "train/loop/internal.h"

#include <inttypes.h>
#include <string.h>

static tr_status find(const tr_trainer *trainer, const char *name, int64_t count,
                      const struct tr_parameter **out)
{
    const struct tr_model *model = trainer->job->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (strcmp(parameter->name, name) != 0) continue;
        *out = parameter;
        if (count == parameter->count) return TR_OK;
        return tr_fail(TR_EMISMATCH, "parameter \"%s\" has %" PRId64 " values, %" PRId64 " are given", name,
                       parameter->count, count);
    }
    return tr_fail(TR_ENOTFOUND, "there is no parameter \"%s\"; tr_trainer_parameter_at() lists them", name);
}

int32_t tr_trainer_parameter_count(const tr_trainer *trainer)
{
    return trainer->job->model->parameter_count;
}

tr_status tr_trainer_parameter_at(const tr_trainer *trainer, int32_t index, struct tr_parameter_info *info)
{
    const struct tr_model *model = trainer->job->model;
    if (index < 0 || index >= model->parameter_count)
        return tr_fail(TR_ENOTFOUND, "there is no parameter %" PRId32 "; they are 0 to %d", index,
                       model->parameter_count - 1);
    const struct tr_parameter *parameter = &model->parameters[index];
    struct tr_parameter_info facts = {
        .name = parameter->name,
        .count = parameter->count,
        .dimensions = parameter->shape.rank,
    };
    for (int i = 0; i < parameter->shape.rank; i++) facts.shape[i] = parameter->shape.size[i];
    return tr_sized_give(&facts, sizeof facts, "TR_PARAMETER_INFO_INIT", info);
}

tr_status tr_trainer_parameter(tr_trainer *trainer, const char *name, float *values, int64_t count)
{
    const struct tr_parameter *parameter = NULL;
    TR_TRY(trainer_check_process(trainer));
    TR_TRY(find(trainer, name, count, &parameter));
    if (!tr_variables_keep(trainer->variables.arenas, TR_ARENA_PARAMETERS, parameter->offset,
                           parameter->offset + parameter->count))
        return tr_fail(TR_ENOTFOUND,
                       "parameter \"%s\" is on another process, that of its layer; load it from a checkpoint",
                       name);
    const float *arena = tr_variables_arena(trainer->variables.arenas, TR_ARENA_PARAMETERS);
    TR_TRY(tr_device_to_host(trainer->variables.holder, values, arena + parameter->offset,
                             (size_t)count * sizeof *values));
    return tr_device_wait(trainer->variables.holder);
}

static tr_status digest(const char *name, const float *values, int64_t count, char text[TR_SHA256_TEXT])
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, name, strlen(name) + 1);
    tr_sha256_add(hash, values, (size_t)count * sizeof *values);
    return tr_sha256_end(&hash, text);
}

/* All ranks set the same, or none does: differing parameters or values, or a rank that cannot set them
 * (its reason is `status`), are found before anything is changed.
 */
static tr_status agree(const tr_trainer *trainer, tr_status status, const char *name, const float *values,
                       int64_t count)
{
    struct tr_failure failure;
    char text[TR_SHA256_TEXT] = "refused";
    if (!trainer->crew.comm) return status;
    if (status == TR_OK) status = digest(name, values, count, text);
    tr_failure_keep(&failure, status);
    tr_status agreed = tr_comm_agree(trainer->crew.comm, "parameter to be set", text,
                                     "set the same one to the same values on all");
    return failure.status != TR_OK ? tr_failure_restore(&failure) : agreed;
}

/* Checks that this rank can make alone. */
static tr_status check(const tr_trainer *trainer, const char *name, int64_t count,
                       const struct tr_parameter **out)
{
    TR_TRY(find(trainer, name, count, out));
    if (trainer->variables.holder != trainer->variables.device)
        return tr_fail(
            TR_EUNSUPPORTED,
            "parameter \"%s\" cannot be set while another device holds it; leave `parameters_on` out", name);
    return TR_OK;
}

/* After all ranks have set their parts of it. */
static tr_status meet(const tr_trainer *trainer)
{
    tr_ticket *ticket = NULL;
    tr_variables_trim(trainer->variables.arenas);
    TR_TRY(tr_variables_give(trainer->variables.arenas));
    if (trainer->crew.comm) {
        TR_TRY(tr_comm_barrier(trainer->crew.comm, &ticket));
        TR_TRY(tr_comm_wait(trainer->crew.comm, &ticket));
    }
    return tr_strategy_connect(trainer->variables.strategy, trainer->variables.step);
}

tr_status tr_trainer_set_parameter(tr_trainer *trainer, const char *name, const float *values, int64_t count)
{
    const struct tr_parameter *parameter = NULL;
    TR_TRY(trainer_check_process(trainer));
    if (trainer->crew.comm && tr_comm_size(trainer->crew.comm) > 1 &&
        tr_strategy_is_asynchronous(trainer->variables.strategy))
        return tr_fail(
            TR_EUNSUPPORTED,
            "parameter \"%s\" cannot be set in an asynchronous run of the strategy %s, whose processes have "
            "no step in common; set it in a job of one process, save that, and begin with its checkpoint "
            "(`from`)",
            name, tr_strategy_name(trainer->variables.strategy));
    TR_TRY(agree(trainer, check(trainer, name, count, &parameter), name, values, count));
    int64_t begin = parameter->offset, end = begin + count;
    trainer->directory.saved_step = trainer->variables.hash_step = -1;
    trainer_receipt_renew(trainer);
    TR_TRY(tr_strategy_put(trainer->variables.strategy, TR_ARENA_PARAMETERS, begin, end, values));
    TR_TRY(tr_strategy_put(trainer->variables.strategy, TR_ARENA_EMA, begin, end, values));
    return meet(trainer);
}
