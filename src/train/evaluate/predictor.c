/* A predictor: the network of a checkpoint, loaded, and the facts about it. */
#include "train/evaluate/predictor.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "data/tables/join.h"
#include "data/text/corpus_source.h"
#include "data/cache/store.h"
#include "job/file/input.h"
#include "job/tensors.h"
#include "train/evaluate/metrics.h"

#include <string.h>
#include <unistd.h>

/* ---- loading ---- */

/* Gives the device parameters: an arena on the host. */
static tr_status take_parameters(tr_predictor *predictor, const float *arena)
{
    const size_t bytes = ((size_t)predictor->job->model->arena_floats + 1) * sizeof *arena;
    void *memory;
    TR_TRY(tr_device_alloc(predictor->device, bytes, &memory));
    predictor->parameters = memory;
    tr_status status = tr_device_to_device(predictor->device, memory, arena, bytes);
    tr_status finished = tr_device_wait(predictor->device);
    return status == TR_OK ? finished : status;
}

/* Of averages where wanted and kept. */
static tr_status load_parameters(tr_predictor *predictor, tr_checkpoint *checkpoint, bool use_average)
{
    float *arena = tr_alloc_zero((size_t)predictor->job->model->arena_floats + 1, sizeof *arena);
    if (!arena) return TR_ENOMEM;
    tr_status status = tr_job_load_parameters(predictor->job, checkpoint, use_average, arena);
    if (status == TR_OK) status = take_parameters(predictor, arena);
    tr_free(arena);
    return status;
}

static tr_status begin(tr_predictor *predictor, const struct tr_predict_settings *settings)
{
    TR_TRY(tr_store_create(NULL, settings->data_cache, settings->data_cache_bytes, &predictor->store));
    tr_store_defer(predictor->store);
    predictor->data = settings->data;
    predictor->data_count = settings->data_count;
    tr_store_give(predictor->store, settings->data, settings->data_count);
    return TR_OK;
}

/* Once the job is there. */
static tr_status open_device(tr_predictor *predictor, const struct tr_predict_settings *settings)
{
    TR_TRY(tr_job_scaling(predictor->job, &predictor->scaling));
    TR_TRY(tr_job_columns_read(predictor->job, &predictor->columns));
    const struct tr_device_choice device = {.name = settings->device ? settings->device : "cpu",
                                            .threads = settings->threads,
                                            .isa = settings->isa,
                                            .cache = settings->program_cache};
    return tr_device_open(&device, &predictor->device);
}

static tr_status note_origin(tr_predictor *predictor, const char *path, const char *skipped, int64_t step,
                             const char *hash)
{
    predictor->process = getpid();
    predictor->step = step;
    memcpy(predictor->hash, hash, strlen(hash) + 1);
    predictor->path = tr_strdup(path);
    predictor->skipped = tr_strdup(skipped ? skipped : "");
    return predictor->path && predictor->skipped ? TR_OK : TR_ENOMEM;
}

static tr_status load(tr_predictor *predictor, const struct tr_predict_settings *settings,
                      tr_checkpoint *checkpoint)
{
    struct tr_job_settings as_it_is = {0};
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    TR_TRY(note_origin(predictor, tr_checkpoint_path(checkpoint), tr_checkpoint_skipped(checkpoint),
                       facts->step, facts->parameter_hash));
    TR_TRY(begin(predictor, settings));
    as_it_is.store = predictor->store;
    TR_TRY(tr_job_restore(checkpoint, &as_it_is, &predictor->job));
    TR_TRY(open_device(predictor, settings));
    return load_parameters(predictor, checkpoint, settings->use_average);
}

static tr_status copy(tr_predictor *predictor, const struct tr_predict_settings *settings,
                      const struct tr_job *job, const float *arena)
{
    struct tr_job_settings as_it_is = {0};
    TR_TRY(begin(predictor, settings));
    as_it_is.store = predictor->store;
    TR_TRY(tr_job_again(job, &as_it_is, &predictor->job));
    TR_TRY(open_device(predictor, settings));
    return take_parameters(predictor, arena);
}

/* Whether the main text of a job has a boundary. */
static tr_status find_boundary(const struct tr_job *job, bool *has)
{
    char *own = NULL;
    *has = false;
    if (!job->state || job->features != TR_FEATURE_TOKENS || !tr_job_is_of_tokens(job)) return TR_OK;
    if (job->parts.text[0]) TR_TRY(tr_join_state_of(job->state, job->parts.text, &own));
    *has = tr_vocabulary_state_has_boundary(own ? own : job->state);
    tr_free(own);
    return TR_OK;
}

/* Gives it to the caller or, after a failure, destroys it. */
static tr_status finish(tr_predictor *predictor, tr_status status, tr_predictor **out)
{
    if (status == TR_OK) status = find_boundary(predictor->job, &predictor->writes);
    if (status != TR_OK) tr_predictor_destroy(&predictor);
    *out = predictor;
    return status;
}

tr_status tr_predict_settings_take(const struct tr_predict_settings *given, struct tr_predict_settings *out)
{
    static const struct tr_predict_settings defaults = TR_PREDICT_SETTINGS_INIT;
    return tr_sized_take(given, &defaults, sizeof defaults, "TR_PREDICT_SETTINGS_INIT", out);
}

tr_status tr_predictor_of(const struct tr_job *job, const float *arena, int64_t step, const char *hash,
                          const struct tr_predict_settings *settings, tr_predictor **out)
{
    *out = NULL;
    tr_predictor *predictor = tr_alloc_zero(1, sizeof *predictor);
    if (!predictor) return TR_ENOMEM;
    tr_status status = note_origin(predictor, "(trainer)", NULL, step, hash);
    if (status == TR_OK) status = copy(predictor, settings, job, arena);
    return finish(predictor, status, out);
}

static tr_status open_checkpoint(const struct tr_predict_settings *settings, tr_checkpoint **out)
{
    const bool in_memory = tr_checkpoint_state_is_given(&settings->state);
    if (!settings->checkpoint == !in_memory)
        return tr_fail(TR_EINVAL, in_memory ? "both `checkpoint` and `state` are given; give one of them"
                                            : "no checkpoint is given to predict with");
    if (in_memory) return tr_checkpoint_open_state(&settings->state, out);
    return settings->best ? tr_checkpoint_open_best(settings->checkpoint, out)
                          : tr_checkpoint_open(settings->checkpoint, out);
}

tr_status tr_predictor_create(const struct tr_predict_settings *given, tr_predictor **out)
{
    struct tr_predict_settings settings;
    tr_checkpoint *checkpoint;
    *out = NULL;
    TR_TRY(tr_predict_settings_take(given, &settings));
    TR_TRY(open_checkpoint(&settings, &checkpoint));
    tr_predictor *predictor = tr_alloc_zero(1, sizeof *predictor);
    tr_status status = predictor ? load(predictor, &settings, checkpoint) : TR_ENOMEM;
    tr_checkpoint_close(&checkpoint);
    return finish(predictor, status, out);
}

void tr_predictor_destroy(tr_predictor **handle)
{
    tr_predictor *predictor = *handle;
    *handle = NULL;
    if (!predictor || tr_predictor_check_process(predictor) != TR_OK)
        return; /* its threads cannot be waited for */
    tr_given_destroy(&predictor->given);
    tr_vocabulary_destroy(&predictor->vocabulary);
    tr_vocabulary_destroy(&predictor->second);
    tr_generator_destroy(&predictor->translator);
    if (predictor->device) tr_device_free(predictor->device, predictor->parameters);
    tr_device_destroy(&predictor->device);
    tr_job_destroy(&predictor->job);
    tr_store_destroy(&predictor->store);
    tr_scaling_release(&predictor->scaling);
    tr_job_columns_release(&predictor->columns);
    tr_metrics_destroy(&predictor->metrics);
    tr_free(predictor->skipped);
    tr_free(predictor->path);
    tr_free(predictor);
}

/* ---- facts ---- */

/* Whether the job learned from text to predict the next token. */
static bool is_language_model(const tr_predictor *predictor)
{
    const struct tr_job *job = predictor->job;
    return tr_job_is_of_tokens(job) &&
           (predictor->writes ||
            (job->data.train && tr_config_get(job->data.train, tr_source_format_corpus.name)));
}

/* For values, if each has a column with a name. */
static const char *const *target_names(const tr_predictor *predictor, int32_t targets)
{
    const struct tr_string_list *classes = &predictor->job->input.classes,
                                *columns = &predictor->columns.labels;
    if (targets == 0) return NULL;
    const struct tr_string_list *names = classes->count == targets ? classes : columns;
    return names->count == targets ? (const char *const *)names->item : NULL;
}

tr_status tr_predictor_info(const tr_predictor *predictor, struct tr_predict_info *info)
{
    const struct tr_job *job = predictor->job;
    bool image = job->features == TR_FEATURE_IMAGE || tr_job_is_number_image(job);
    struct tr_shape stored = {0}, wanted;
    if (image) tr_job_image(job, &stored, &wanted);
    const struct tr_string_list *classes = &job->input.classes;
    const struct tr_loss *loss = &job->model->loss;
    int32_t outputs = (int32_t)tr_predictor_outputs(predictor),
            targets = (int32_t)tr_loss_targets(loss, outputs);
    const struct tr_predict_info facts = {
        .name = job->file.name,
        .checkpoint = predictor->path,
        .skipped = predictor->skipped,
        .hash = predictor->hash,
        .step = predictor->step,
        .features = job->features,
        .height = (int32_t)stored.size[0],
        .width = (int32_t)stored.size[1],
        .channels = (int32_t)stored.size[2],
        .floats = predictor->columns.count,
        .outputs = outputs,
        .classification = tr_job_is_classification(job),
        .accuracy = tr_job_has_accuracy(job),
        .class_names = classes->count == outputs ? (const char *const *)classes->item : NULL,
        .of_tokens = tr_job_is_of_tokens(job),
        .language_model = is_language_model(predictor),
        .two_texts = predictor->writes && job->parts.second[0],
        .heads = loss->head_count > 0 ? loss->head_count : 1,
        .targets = targets,
        .target_names = target_names(predictor, targets),
        .pixel_height = tr_job_pixels(job) > 0 ? (int32_t)job->model->output.size[0] : 0,
        .pixel_width = tr_job_pixels(job) > 0 ? (int32_t)job->model->output.size[1] : 0,
    };
    return tr_sized_give(&facts, sizeof facts, "TR_PREDICT_INFO_INIT", info);
}

int32_t tr_predictor_category_count(const tr_predictor *predictor, int32_t column)
{
    const struct tr_categories *categories = &predictor->columns.categories;
    return column >= 0 && column < categories->columns ? categories->names[column].count : 0;
}

const char *tr_predictor_category_name(const tr_predictor *predictor, int32_t column, int32_t index)
{
    bool there = index >= 0 && index < tr_predictor_category_count(predictor, column);
    return there ? predictor->columns.categories.names[column].name[index] : NULL;
}

tr_status tr_predictor_category(const tr_predictor *predictor, int32_t column, const char *name, float *value)
{
    if (tr_predictor_category_count(predictor, column) == 0)
        return tr_fail(TR_ENOTFOUND, "value %d of \"%s\" is a number, no name", (int)column + 1,
                       predictor->path);
    return tr_job_columns_find(&predictor->columns, column, name, value);
}

/* The name of the layer that gives the outputs of a loss: the last one, or one of those that it
 * concatenates for several losses. "" where the widths differ.
 */
static const char *head_name(const struct tr_model *model, int32_t index)
{
    const struct tr_layer *last = &model->layers[model->layer_count - 1];
    const struct tr_loss *loss = &model->loss;
    if (loss->head_count == 0) return last->name;
    if (strcmp(last->class->name, "concat") != 0 || last->input_count != loss->head_count) return "";
    for (int32_t i = 0; i < loss->head_count; i++)
        if (last->input[i] < 0 || tr_shape_count(&last->in[i]) != loss->head[i].outputs) return "";
    return model->layers[last->input[index]].name;
}

tr_status tr_predictor_head(const tr_predictor *predictor, int32_t index, struct tr_predict_head *head)
{
    const struct tr_loss *loss = &predictor->job->model->loss;
    int32_t count = loss->head_count > 0 ? loss->head_count : 1;
    if (index < 0 || index >= count)
        return tr_fail(TR_ENOTFOUND,
                       "the network of \"%s\" has %d losses, there is no number %d counted from 0",
                       predictor->path, (int)count, (int)index);
    int64_t outputs = loss->head_count > 0 ? loss->head[index].outputs : tr_predictor_outputs(predictor),
            first = 0;
    for (int32_t i = 0; i < index; i++) first += loss->head[i].outputs;
    const struct tr_loss *own = loss->head_count > 0 ? &loss->head[index] : loss;
    const struct tr_loss_class *class = tr_loss_class_of(own);
    const struct tr_predict_head facts = {
        .loss = class->name,
        .outputs = (int32_t)outputs,
        .classification = tr_loss_scores_classes(own),
        .yes_or_no = tr_loss_has_probabilities(own) && !tr_loss_scores_classes(own),
        .first_output = (int32_t)first,
        .name = head_name(predictor->job->model, index),
    };
    return tr_sized_give(&facts, sizeof facts, "TR_PREDICT_HEAD_INIT", head);
}
