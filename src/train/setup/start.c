#include "train/setup/start.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "job/tensors.h"
#include "train/loop/internal.h"
#include "train/setup/resume.h"
#include "train/setup/vectors.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Most parameters named in a note. */
#define NAMED 6

/* The parameters on the host, while they are set. */
struct start {
    tr_trainer *trainer;
    float *values; /* an arena */
    bool copied;   /* it is not the variables' own */
    struct tr_text summary;
};

/* Where this process sets a parameter's values, else NULL: another process does. */
static float *address_of(const struct start *start, const struct tr_parameter *parameter)
{
    const tr_variables *variables = start->trainer->variables.arenas;
    bool takes =
        tr_variables_fills(variables) && tr_variables_keep(variables, TR_ARENA_PARAMETERS, parameter->offset,
                                                           parameter->offset + parameter->count);
    return takes ? start->values + parameter->offset : NULL;
}

static tr_status begin(struct start *start)
{
    tr_variables *variables = start->trainer->variables.arenas;
    float *arena = tr_variables_arena(variables, TR_ARENA_PARAMETERS);
    if (tr_device_host_view(start->trainer->variables.holder, arena)) {
        start->values = arena;
        return TR_OK;
    }
    start->values = tr_alloc_zero((size_t)start->trainer->job->model->arena_floats + 1, sizeof(float));
    start->copied = true;
    return start->values ? tr_variables_store(variables, TR_ARENA_PARAMETERS, start->values) : TR_ENOMEM;
}

static tr_status finish(struct start *start)
{
    tr_variables *variables = start->trainer->variables.arenas;
    if (start->copied) TR_TRY(tr_variables_load(variables, TR_ARENA_PARAMETERS, start->values));
    tr_variables_trim(variables);
    tr_free(start->trainer->beginning.start_summary);
    start->trainer->beginning.start_summary = NULL;
    return tr_text_finish(&start->summary, &start->trainer->beginning.start_summary);
}

/* ---- a checkpoint ---- */

static tr_status read_parameter(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                                const struct tr_safetensors_entry *entry, float *to)
{
    TR_TRY(tr_checkpoint_read(checkpoint, group, entry, to));
    int64_t count = (int64_t)(entry->bytes / sizeof *to);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(to[i]))
            return tr_fail(TR_ENONFINITE, "tensor \"%.200s\" holds %g at element %" PRId64,
                           entry->tensor.name, (double)to[i], i);
    return TR_OK;
}

/* Adds "dense2.weights F32[64,3] (there F32[64,10])". */
static void name_other(struct tr_text *text, int number, const struct tr_stored_tensor *here,
                       const struct tr_safetensors_entry *there)
{
    char shape[TR_STORED_TEXT], other[TR_STORED_TEXT];
    if (number >= NAMED) return;
    tr_text_addf(text, "%s%s %s", number ? ", " : "", here->name, tr_stored_describe(here, shape));
    if (there) tr_text_addf(text, " (there %s)", tr_stored_describe(&there->tensor, other));
}

/* The moving average of a parameter in the checkpoint, as evaluations and predictions use it; NULL where
   it has none. */
static const struct tr_safetensors_entry *find_average(const tr_safetensors *file,
                                                       const struct tr_parameter *parameter,
                                                       const struct tr_stored_tensor *wanted)
{
    char name[TR_STATE_NAME];
    tr_state_name(parameter, tr_arena_names[TR_ARENA_EMA], name);
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
    return entry && tr_stored_alike(&entry->tensor, wanted) ? entry : NULL;
}

static tr_status take_parameters(struct start *start, tr_checkpoint *checkpoint)
{
    const struct tr_model *model = start->trainer->job->model;
    const tr_safetensors *file = tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_PARAMETERS),
                         *averages = tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER);
    struct tr_text others = TR_TEXT_INIT;
    int taken = 0, averaged = 0, left = 0;
    tr_status status = TR_OK;
    for (int i = 0; i < model->parameter_count && status == TR_OK; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        const struct tr_stored_tensor wanted = tr_parameter_tensor(parameter, parameter->name, NULL);
        const struct tr_safetensors_entry *entry = tr_safetensors_find(file, parameter->name);
        if (!entry || !tr_stored_alike(&entry->tensor, &wanted)) {
            name_other(&others, left++, &wanted, entry);
            continue;
        }
        const struct tr_safetensors_entry *average = find_average(averages, parameter, &wanted);
        float *place = address_of(start, parameter);
        taken++;
        averaged += average != NULL;
        if (place)
            status = average ? read_parameter(checkpoint, TR_CHECKPOINT_OPTIMIZER, average, place)
                             : read_parameter(checkpoint, TR_CHECKPOINT_PARAMETERS, entry, place);
    }
    if (left > NAMED) tr_text_addf(&others, " and %d more", left - NAMED);
    const char *path = tr_checkpoint_path(checkpoint), *list = others.bytes ? others.bytes : "";
    if (others.failed) status = TR_ENOMEM;
    if (status == TR_OK && taken == 0 && start->trainer->job->adapters.rank == 0)
        status = tr_fail(
            TR_EMISMATCH,
            "checkpoint \"%s\" has nothing in common with the network, which has %s; give layers that "
            "are the same the same `name`",
            path, list);
    tr_text_addf(&start->summary, "%s: %d of %d parameters", path, taken + model->base_count,
                 model->parameter_count + model->base_count);
    if (model->base_count > 0)
        tr_text_addf(&start->summary, ", %d of them as the frozen base", model->base_count);
    if (averaged) tr_text_addf(&start->summary, ", of %d their moving averages", averaged);
    tr_text_addf(&start->summary, "%s%s\n", left ? ", new are " : "", list);
    tr_text_release(&others);
    return status == TR_OK || status == TR_EMISMATCH ? status : tr_fail_in(status, "checkpoint \"%s\"", path);
}

static bool is_given(const struct tr_train_settings *settings)
{
    return settings->from || tr_checkpoint_state_is_given(&settings->from_state);
}

/* Layers beside adapters that are trained themselves begin with the base's parameters. */
static bool takes_of_base(const struct tr_job *job)
{
    return job->adapters.rank > 0 && job->adapters.train.count > 0;
}

static tr_status take_checkpoint(struct start *start, const struct tr_train_settings *settings)
{
    struct tr_train_settings from = *settings;
    tr_checkpoint *checkpoint = NULL;
    from.resume = is_given(settings) ? settings->from : start->trainer->job->adapters.base;
    from.state = settings->from_state;
    from.continues = false;
    TR_TRY(tr_train_resume(start->trainer->crew.comm, &from, &checkpoint));
    tr_status status = take_parameters(start, checkpoint);
    tr_checkpoint_close(&checkpoint);
    return status;
}

/* ---- vectors ---- */

static tr_status take_vectors(struct start *start, const struct tr_layer *layer, const char *name)
{
    const struct tr_job *job = start->trainer->job;
    const struct tr_parameter *parameter = &job->model->parameters[layer->parameter[0]];
    struct tr_vectors_wanted wanted = {
        .words = parameter->shape.size[0],
        .width = parameter->shape.size[1],
        .state = job->state,
        .values = address_of(start, parameter),
    };
    char digest[TR_SHA256_TEXT];
    int64_t taken = 0;
    char *path = tr_source_path(job->file.directory, name);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_vectors_read(path, &wanted, &taken, digest);
    if (status != TR_OK) status = tr_fail_in(status, "layer \"%s\"", layer->name);
    tr_text_addf(&start->summary, "%s: vectors of %" PRId64 " of %" PRId64 " words of %s\n", path, taken,
                 wanted.words, layer->name);
    tr_free(path);
    if (status != TR_OK || !start->trainer->crew.comm) return status;
    return tr_comm_agree(start->trainer->crew.comm, "vectors", digest,
                         "give all hosts the same file of vectors");
}

/* The vectors that the layer's options request, or NULL. */
static const char *vectors_of(const struct tr_layer *layer)
{
    char *const *vectors = tr_layer_option(layer, "vectors");
    return vectors && layer->parameter_count > 0 ? *vectors : NULL;
}

static tr_status take_all(struct start *start, const struct tr_train_settings *settings)
{
    const struct tr_model *model = start->trainer->job->model;
    TR_TRY(begin(start));
    for (int i = 0; i < model->layer_count; i++)
        if (vectors_of(&model->layers[i]))
            TR_TRY(take_vectors(start, &model->layers[i], vectors_of(&model->layers[i])));
    if (is_given(settings) || takes_of_base(start->trainer->job)) TR_TRY(take_checkpoint(start, settings));
    return finish(start);
}

tr_status trainer_start(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    const struct tr_model *model = trainer->job->model;
    struct start start = {.trainer = trainer};
    bool wanted = is_given(settings) || takes_of_base(trainer->job);
    for (int i = 0; i < model->layer_count; i++) wanted |= vectors_of(&model->layers[i]) != NULL;
    if (!wanted) return TR_OK;
    tr_status status = take_all(&start, settings);
    if (start.copied) tr_free(start.values);
    tr_text_release(&start.summary);
    return status;
}
