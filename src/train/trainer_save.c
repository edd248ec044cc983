/* A trainer's checkpoints: what is kept of a run, and how it is taken up again. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "job/settings.h"
#include "job/tensors.h"
#include "train/trainer_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BEST_LOSS         "best_loss"
#define WORSE_EVALUATIONS "worse_evaluations"
#define LAST_ACCURACY     "last_accuracy"

/* The tensors of a checkpoint, in host memory. */
struct tensors {
    struct tr_stored_tensor *tensor[TR_CHECKPOINT_GROUPS];
    int64_t count[TR_CHECKPOINT_GROUPS];
    char (*name)[TR_STATE_NAME]; /* of the optimizer's: "m.conv1.weights" */
    float *host[TR_ARENAS];      /* whole arenas; borrowed from the device where it shares memory */
    float *copy[TR_ARENAS];      /* those that are ours */
};

static void release_tensors(struct tensors *tensors)
{
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++) tr_free(tensors->tensor[i]);
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

static tr_status host_arenas(tr_trainer *trainer, struct tensors *tensors, bool store)
{
    for (int i = 0; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(trainer->variables, (enum tr_arena)i);
        if (!arena) continue;
        if (tr_device_host_view(trainer->holder, arena)) {
            tensors->host[i] = arena;
            continue;
        }
        size_t floats = (size_t)trainer->job->model->arena_floats;
        tensors->host[i] = tensors->copy[i] = tr_alloc_zero(floats + 1, sizeof(float));
        if (!tensors->copy[i]) return TR_ENOMEM;
        if (store) TR_TRY(tr_variables_store(trainer->variables, (enum tr_arena)i, tensors->copy[i]));
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
static tr_status match_outer(tr_trainer *trainer, const tr_checkpoint *checkpoint, struct tensors *tensors)
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

/* The place of a tensor that is to be saved or loaded: none for one to be loaded of which nothing is kept
 * here. */
static struct tr_stored_tensor tensor_of(tr_trainer *trainer, const struct tr_parameter *parameter,
                                         enum tr_arena arena, const char *name, const struct tensors *tensors,
                                         bool loads)
{
    struct tr_stored_tensor tensor = tr_parameter_tensor(parameter, name, tensors->host[arena]);
    int64_t begin = parameter->offset, end = begin + parameter->count;
    if (loads && !tr_variables_keep(trainer->variables, arena, begin, end)) tensor.data = NULL;
    return tensor;
}

/* Lists all tensors: to be saved, with the numbers of the device, or, with `checkpoint`, to be loaded. */
static tr_status list_tensors(tr_trainer *trainer, const tr_checkpoint *checkpoint, struct tensors *out)
{
    const struct tr_model *model = trainer->job->model;
    size_t parameters = (size_t)model->parameter_count, states = parameters * (TR_ARENAS - 1);
    TR_TRY(host_arenas(trainer, out, checkpoint == NULL));
    if (checkpoint) TR_TRY(match_outer(trainer, checkpoint, out));
    out->tensor[TR_CHECKPOINT_PARAMETERS] = tr_alloc(parameters, sizeof(struct tr_stored_tensor));
    out->tensor[TR_CHECKPOINT_OPTIMIZER] = tr_alloc(states, sizeof(struct tr_stored_tensor));
    out->name = tr_alloc(states, sizeof *out->name);
    if (!out->tensor[TR_CHECKPOINT_PARAMETERS] || !out->tensor[TR_CHECKPOINT_OPTIMIZER] || !out->name)
        return TR_ENOMEM;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        out->tensor[TR_CHECKPOINT_PARAMETERS][out->count[TR_CHECKPOINT_PARAMETERS]++] =
            tensor_of(trainer, parameter, TR_ARENA_PARAMETERS, parameter->name, out, checkpoint != NULL);
        for (int arena = TR_ARENA_M; arena < TR_ARENAS; arena++) {
            if (!out->host[arena] || !keeps(trainer, (enum tr_arena)arena, parameter)) continue;
            int64_t number = out->count[TR_CHECKPOINT_OPTIMIZER]++;
            tr_state_name(parameter, (enum tr_arena)arena, out->name[number]);
            out->tensor[TR_CHECKPOINT_OPTIMIZER][number] = tensor_of(
                trainer, parameter, (enum tr_arena)arena, out->name[number], out, checkpoint != NULL);
        }
    }
    return TR_OK;
}

static tr_status write_checkpoint(tr_trainer *trainer, const struct tensors *tensors, const char *text,
                                  const char *hash, char **path)
{
    const struct tr_job *job = trainer->job;
    struct tr_checkpoint_metric metrics[] = {
        {BEST_LOSS, trainer->best_loss},
        {WORSE_EVALUATIONS, (double)trainer->worse_evaluations},
        {LAST_ACCURACY, trainer->last_accuracy},
    };
    struct tr_checkpoint_file files[] = {
        {TR_JOB_FILE, text, strlen(text)},
        {job->input.state, job->state, job->state ? strlen(job->state) : 0},
    };
    struct tr_checkpoint_content content = {
        .facts = {.step = trainer->step,
                  .seed = (uint64_t)job->file.seed,
                  .microbatches = job->train.microbatches,
                  .model_digest = job->digest,
                  .data_digest = trainer->data_digest,
                  .parameter_hash = hash,
                  .metrics = metrics,
                  .metric_count = sizeof metrics / sizeof metrics[0]},
        .files = files,
        .file_count = job->input.state && job->state ? 2 : 1,
    };
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++) {
        content.group[i].tensors = tensors->tensor[i];
        content.group[i].count = tensors->count[i];
    }
    return tr_checkpoint_save(NULL, trainer->out, job->train.keep, &content, path);
}

/* The chief's part of saving; what the optimizer keeps has been gathered. */
static tr_status save_here(tr_trainer *trainer, char **path)
{
    struct tensors tensors = {0};
    char hash[TR_SHA256_TEXT], *text = NULL;
    tr_status status;
    TR_TRY(trainer_digest_data(trainer));
    TR_TRY(tr_variables_hash(trainer->variables, hash));
    memcpy(trainer->hash, hash, sizeof trainer->hash);
    trainer->hash_step = trainer->step;
    TR_TRY_GOTO(tr_job_text(trainer->job, &text), out);
    TR_TRY_GOTO(list_tensors(trainer, NULL, &tensors), out);
    TR_TRY_GOTO(write_checkpoint(trainer, &tensors, text, hash, path), out);
out:
    release_tensors(&tensors);
    tr_free(text);
    return status;
}

tr_status trainer_gather(tr_trainer *trainer)
{
    TR_TRY(tr_strategy_gather(trainer->strategy));
    trainer->step += tr_strategy_take_ahead(trainer->strategy);
    return TR_OK;
}

tr_status trainer_gather_parameters(tr_trainer *trainer)
{
    TR_TRY(tr_strategy_gather_parameters(trainer->strategy));
    trainer->step += tr_strategy_take_ahead(trainer->strategy);
    return TR_OK;
}

void trainer_release(tr_trainer *trainer)
{
    tr_strategy_release(trainer->strategy);
}

tr_status trainer_note_hash(tr_trainer *trainer)
{
    if (!tr_strategy_is_spread(trainer->strategy)) return TR_OK;
    TR_TRY(tr_strategy_hash(trainer->strategy, trainer->hash));
    trainer->hash_step = trainer->step;
    return TR_OK;
}

tr_status trainer_settle(tr_trainer *trainer)
{
    if (!tr_strategy_is_asynchronous(trainer->strategy)) return TR_OK;
    TR_TRY(tr_strategy_settle(trainer->strategy));
    return trainer_gather(trainer);
}

tr_status trainer_save(tr_trainer *trainer, char **path)
{
    if (!trainer->out)
        return tr_fail(TR_EINVAL, "there is no output directory to save to; give one with --out");
    int32_t status = TR_OK;
    TR_TRY(trainer_gather(trainer));
    if (trainer_is_chief(trainer)) status = (int32_t)save_here(trainer, path);
    trainer_release(trainer);
    TR_TRY(tr_strategy_share(trainer->strategy, &status, sizeof status));
    if (status == TR_OK) {
        trainer->saved_step = trainer->step;
        trainer->saved_at = tr_clock_seconds();
    }
    if (status != TR_OK && !trainer_is_chief(trainer))
        return tr_fail((tr_status)status, "rank 0 could not save the checkpoint of step %lld",
                       (long long)trainer->step);
    return (tr_status)status;
}

/* ---- restoring ---- */

/* The first setting that differs from those of the checkpoint, followed by "; "; "" where it cannot be told.
   Returned, free with tr_free(). */
static char *first_difference(const struct tr_job *job, const tr_checkpoint *checkpoint)
{
    static const struct tr_job_settings as_it_is = {0};
    struct tr_job *before = NULL;
    char *there = NULL, *here = NULL, *difference = NULL, *said = NULL;
    if (tr_job_restore(checkpoint, &as_it_is, &before) == TR_OK &&
        tr_settings_text(before, &there) == TR_OK && tr_settings_text(job, &here) == TR_OK &&
        tr_settings_difference(there, here, &difference) == TR_OK && *difference)
        said = tr_format("%s; ", difference);
    tr_free(difference);
    tr_free(here);
    tr_free(there);
    tr_job_destroy(&before);
    return said ? said : tr_strdup("");
}

static tr_status refuse_settings(const struct tr_job *job, const tr_checkpoint *checkpoint)
{
    char *difference = first_difference(job, checkpoint);
    if (!difference) return TR_ENOMEM;
    tr_fail(
        TR_EMISMATCH,
        "checkpoint \"%s\" was made with other settings (%sdigest %.16s, here %.16s), so the run would not "
        "end as the undisturbed one; resume without a model file to use its own, or allow changes "
        "(--resume-changed)",
        tr_checkpoint_path(checkpoint), difference, tr_checkpoint_facts(checkpoint)->model_digest,
        job->digest);
    tr_free(difference);
    return TR_EMISMATCH;
}

static tr_status refuse_changes(tr_trainer *trainer, const tr_checkpoint *checkpoint)
{
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    const char *path = tr_checkpoint_path(checkpoint);
    if (strcmp(facts->model_digest, trainer->job->digest) != 0)
        return refuse_settings(trainer->job, checkpoint);
    TR_TRY(trainer_digest_data(trainer));
    if (strcmp(facts->data_digest, trainer->data_digest) != 0)
        return tr_fail(
            TR_EMISMATCH,
            "checkpoint \"%s\" was made with other training data (digest %.16s, here %.16s); give the same "
            "data, or allow changes (--resume-changed)",
            path, facts->data_digest, trainer->data_digest);
    return TR_OK;
}

static void restore_counters(tr_trainer *trainer, const struct tr_checkpoint_facts *facts)
{
    trainer->step = facts->step;
    for (int64_t i = 0; i < facts->metric_count; i++) {
        double value = facts->metrics[i].value;
        if (strcmp(facts->metrics[i].name, BEST_LOSS) == 0)
            trainer->best_loss = isnan(value) ? INFINITY : value;
        if (strcmp(facts->metrics[i].name, WORSE_EVALUATIONS) == 0 && value >= 0 && value < 0x1p53)
            trainer->worse_evaluations = (int64_t)value;
        if (strcmp(facts->metrics[i].name, LAST_ACCURACY) == 0 && !isnan(value))
            trainer->last_accuracy = value;
    }
}

static tr_status load_tensors(tr_trainer *trainer, tr_checkpoint *checkpoint, struct tensors *tensors)
{
    TR_TRY(list_tensors(trainer, checkpoint, tensors));
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++)
        TR_TRY(tr_checkpoint_load(checkpoint, (enum tr_checkpoint_group)i, tensors->tensor[i],
                                  tensors->count[i]));
    for (int i = 0; i < TR_ARENAS; i++)
        if (tensors->copy[i] && tr_variables_arena(trainer->variables, (enum tr_arena)i))
            TR_TRY(tr_variables_load(trainer->variables, (enum tr_arena)i, tensors->copy[i]));
    tr_variables_trim(trainer->variables); /* tensors were loaded whole, also those at the bounds of a part */
    return TR_OK;
}

static tr_status note_origin(tr_trainer *trainer, const tr_checkpoint *checkpoint)
{
    const char *skipped = tr_checkpoint_skipped(checkpoint);
    trainer->resumed = tr_strdup(tr_checkpoint_path(checkpoint));
    trainer->resume_note = tr_strdup(skipped ? skipped : "");
    return trainer->resumed && trainer->resume_note ? TR_OK : TR_ENOMEM;
}

/* Where no rank has all parameters, the chief reads them through once more. */
static tr_status check_hash(tr_trainer *trainer, tr_checkpoint *checkpoint)
{
    const char *expected = tr_checkpoint_facts(checkpoint)->parameter_hash;
    char hash[TR_SHA256_TEXT];
    if (!tr_strategy_is_spread(trainer->strategy))
        TR_TRY(tr_variables_hash(trainer->variables, hash));
    else if (trainer_is_chief(trainer))
        TR_TRY(tr_job_stored_hash(trainer->job, checkpoint, hash));
    else
        return TR_OK;
    if (strcmp(hash, expected) == 0) return TR_OK;
    return tr_fail(TR_ECORRUPT, "checkpoint \"%s\": its parameters have hash %.16s, its manifest says %.16s",
                   trainer->resumed, hash, expected);
}

tr_status trainer_restore(tr_trainer *trainer, tr_checkpoint *checkpoint, bool changed)
{
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    struct tensors tensors = {0};
    if (!changed) TR_TRY(refuse_changes(trainer, checkpoint));
    TR_TRY(note_origin(trainer, checkpoint));
    tr_status status = load_tensors(trainer, checkpoint, &tensors);
    release_tensors(&tensors);
    if (status != TR_OK) return status;
    restore_counters(trainer, facts);
    return check_hash(trainer, checkpoint);
}
