/* Prediction with the network of a checkpoint. */
#include "trireme/predict.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/mathf.h"
#include "data/vocabulary.h"
#include "train/evaluate.h"
#include "job/job.h"
#include "train/single.h"
#include "job/tensors.h"

#include <string.h>

struct tr_predictor {
    struct tr_job *job;
    tr_device *device;
    float *parameters; /* device: an arena, averages where wanted and kept */
    char *path;
    char *skipped; /* what was passed over to get to this checkpoint, or "" */
    char hash[TR_SHA256_TEXT];
    int64_t step;
    tr_single *single;         /* made when first needed */
    tr_vocabulary *vocabulary; /* likewise */
};

/* ---- loading ---- */

static tr_status load_parameters(tr_predictor *predictor, tr_checkpoint *checkpoint, bool use_average)
{
    size_t floats = (size_t)predictor->job->model->arena_floats + 1, bytes = floats * sizeof(float);
    float *arena = tr_alloc_zero(floats, sizeof *arena);
    if (!arena) return TR_ENOMEM;
    void *memory;
    tr_status status = tr_job_load_parameters(predictor->job, checkpoint, use_average, arena);
    if (status == TR_OK) status = tr_device_alloc(predictor->device, bytes, &memory);
    if (status == TR_OK) {
        predictor->parameters = memory;
        status = tr_device_to_device(predictor->device, memory, arena, bytes);
        tr_status finished = tr_device_wait(predictor->device);
        if (status == TR_OK) status = finished;
    }
    tr_free(arena);
    return status;
}

static tr_status load(tr_predictor *predictor, const struct tr_predict_settings *settings,
                      tr_checkpoint *checkpoint)
{
    static const struct tr_job_settings as_it_is = {0};
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    predictor->step = facts->step;
    memcpy(predictor->hash, facts->parameter_hash, strlen(facts->parameter_hash) + 1);
    predictor->path = tr_strdup(tr_checkpoint_path(checkpoint));
    const char *skipped = tr_checkpoint_skipped(checkpoint);
    predictor->skipped = tr_strdup(skipped ? skipped : "");
    if (!predictor->path || !predictor->skipped) return TR_ENOMEM;
    TR_TRY(tr_job_restore(checkpoint, &as_it_is, &predictor->job));
    TR_TRY(tr_device_create(settings->device ? settings->device : "cpu", settings->threads, settings->isa,
                            &predictor->device));
    return load_parameters(predictor, checkpoint, settings->use_average);
}

tr_status tr_predictor_create(const struct tr_predict_settings *settings, tr_predictor **out)
{
    *out = NULL;
    if (settings->size != sizeof *settings)
        return tr_fail(
            TR_EINVAL,
            "settings have %zu bytes, this library expects %zu; begin with TR_PREDICT_SETTINGS_INIT",
            settings->size, sizeof *settings);
    if (!settings->checkpoint) return tr_fail(TR_EINVAL, "no checkpoint is given to predict with");
    tr_checkpoint *checkpoint;
    TR_TRY(tr_checkpoint_open(settings->checkpoint, &checkpoint));
    tr_predictor *predictor = tr_alloc_zero(1, sizeof *predictor);
    tr_status status = predictor ? load(predictor, settings, checkpoint) : TR_ENOMEM;
    tr_checkpoint_close(&checkpoint);
    if (status != TR_OK) {
        tr_predictor_destroy(&predictor);
        return status;
    }
    *out = predictor;
    return TR_OK;
}

void tr_predictor_destroy(tr_predictor **handle)
{
    tr_predictor *predictor = *handle;
    if (!predictor) return;
    tr_single_destroy(&predictor->single);
    tr_vocabulary_destroy(&predictor->vocabulary);
    if (predictor->device) tr_device_free(predictor->device, predictor->parameters);
    tr_device_destroy(&predictor->device);
    tr_job_destroy(&predictor->job);
    tr_free(predictor->skipped);
    tr_free(predictor->path);
    tr_free(predictor);
    *handle = NULL;
}

/* ---- facts ---- */

static int32_t outputs_of(const tr_predictor *predictor)
{
    return (int32_t)tr_shape_count(&predictor->job->model->output);
}

tr_status tr_predictor_info(const tr_predictor *predictor, struct tr_predict_info *info)
{
    const struct tr_job *job = predictor->job;
    const int64_t *stored = job->stored.size;
    bool image = job->features == TR_FEATURE_IMAGE;
    const struct tr_string_list *classes = &job->input.classes;
    *info = (struct tr_predict_info){
        .name = job->file.name,
        .checkpoint = predictor->path,
        .skipped = predictor->skipped,
        .hash = predictor->hash,
        .step = predictor->step,
        .features = job->features,
        .height = image ? (int32_t)stored[0] : 0,
        .width = image ? (int32_t)stored[1] : 0,
        .channels = image ? (int32_t)stored[2] : 0,
        .floats = job->features == TR_FEATURE_FLOATS ? (int32_t)stored[0] : 0,
        .outputs = outputs_of(predictor),
        .classification = tr_job_is_classification(job),
        .class_names = classes->count == outputs_of(predictor) ? (const char *const *)classes->item : NULL,
    };
    return TR_OK;
}

/* ---- predicting ---- */

/* Scores become probabilities, in place. */
static void to_probabilities(const tr_predictor *predictor, int64_t rows, float *output)
{
    int32_t width = outputs_of(predictor);
    if (!tr_job_is_classification(predictor->job)) return;
    for (int64_t r = 0; r < rows; r++, output += width) {
        float most = output[0], sum = 0;
        for (int32_t k = 1; k < width; k++) most = output[k] > most ? output[k] : most;
        for (int32_t k = 0; k < width; k++) sum += output[k] = tr_expf(output[k] - most);
        for (int32_t k = 0; k < width; k++) output[k] /= sum;
    }
}

static tr_status check_features(const tr_predictor *predictor, enum tr_feature_kind given)
{
    static const char *const names[] = {"images", "numbers", "text"};
    if (predictor->job->features == given) return TR_OK;
    return tr_fail(TR_EINVAL, "the network of \"%s\" takes %s, not %s", predictor->path,
                   names[predictor->job->features], names[given]);
}

static tr_status predict_example(tr_predictor *predictor, const struct tr_example *example, float *output)
{
    if (!predictor->single) TR_TRY(tr_single_create(predictor->device, predictor->job, &predictor->single));
    TR_TRY(tr_single_run(predictor->single, predictor->parameters, example, output));
    to_probabilities(predictor, 1, output);
    return TR_OK;
}

tr_status tr_predictor_image(tr_predictor *predictor, const uint8_t *image, float *output)
{
    TR_TRY(check_features(predictor, TR_FEATURE_IMAGE));
    struct tr_example example = {.image = image};
    return predict_example(predictor, &example, output);
}

tr_status tr_predictor_floats(tr_predictor *predictor, const float *values, float *output)
{
    TR_TRY(check_features(predictor, TR_FEATURE_FLOATS));
    struct tr_example example = {.floats = values};
    return predict_example(predictor, &example, output);
}

tr_status tr_predictor_text(tr_predictor *predictor, const char *text, float *output)
{
    TR_TRY(check_features(predictor, TR_FEATURE_TOKENS));
    if (!predictor->vocabulary) {
        int32_t classes;
        if (!predictor->job->state)
            return tr_fail(TR_EFORMAT, "checkpoint \"%s\" keeps no vocabulary", predictor->path);
        TR_TRY(tr_vocabulary_read(predictor->job->state, &predictor->vocabulary, &classes));
    }
    size_t length = strlen(text);
    int64_t count = tr_vocabulary_length(predictor->vocabulary, text, length);
    if (count == 0) return tr_fail(TR_EINVAL, "the text has no words");
    if (count > (1 << 20))
        return tr_fail(TR_EINVAL, "the text has %lld words; at most %d are taken", (long long)count, 1 << 20);
    int32_t *tokens = tr_alloc((size_t)count, sizeof *tokens);
    if (!tokens) return TR_ENOMEM;
    tr_vocabulary_encode(predictor->vocabulary, text, length, tokens);
    struct tr_example example = {.tokens = tokens, .token_count = count};
    tr_status status = predict_example(predictor, &example, output);
    tr_free(tokens);
    return status;
}

/* ---- whole sources ---- */

/* Where outputs go, and what is counted of them. */
struct collector {
    const tr_predictor *predictor;
    int64_t first;
    float *output;      /* or NULL */
    int64_t *confusion; /* or NULL */
};

static tr_status collect(void *user, int64_t first, int64_t rows, const float *output, const int32_t *labels)
{
    struct collector *collector = user;
    int32_t width = outputs_of(collector->predictor);
    if (collector->output) {
        float *to = collector->output + (first - collector->first) * width;
        memcpy(to, output, (size_t)(rows * width) * sizeof *to);
        to_probabilities(collector->predictor, rows, to);
    }
    for (int64_t r = 0; collector->confusion && labels && r < rows; r++) {
        int32_t best = 0;
        for (int32_t k = 1; k < width; k++)
            if (output[r * width + k] > output[r * width + best]) best = k;
        collector->confusion[(int64_t)labels[r] * width + best]++;
    }
    return TR_OK;
}

static tr_status run_source(tr_predictor *predictor, const tr_source *source, int64_t first, int64_t end,
                            struct collector *collector, struct tr_evaluation *result)
{
    tr_evaluator *evaluator = NULL;
    struct tr_evaluated_row *rows = NULL;
    tr_status status;
    TR_TRY(tr_job_check_source(predictor->job, source, "given", result != NULL));
    if (result && !(rows = tr_alloc((size_t)(end - first) + 1, sizeof *rows))) return TR_ENOMEM;
    TR_TRY_GOTO(tr_evaluator_create(predictor->device, predictor->job, source, NULL, &evaluator), out);
    TR_TRY_GOTO(tr_evaluator_run(evaluator, predictor->parameters, first, end, collect, collector, rows),
                out);
    if (result) *result = tr_evaluation_of(rows, end - first);
out:
    tr_evaluator_destroy(&evaluator);
    tr_free(rows);
    return status;
}

tr_status tr_predictor_source(tr_predictor *predictor, const tr_source *source, int64_t first, int64_t count,
                              float *output)
{
    int64_t all = tr_source_info(source)->count;
    if (first < 0 || count < 0 || first > all || count > all - first)
        return tr_fail(TR_EINVAL, "examples %lld to %lld are wanted, the source has %lld", (long long)first,
                       (long long)(first + count - 1), (long long)all);
    struct collector collector = {predictor, first, output, NULL};
    return run_source(predictor, source, first, first + count, &collector, NULL);
}

tr_status tr_predictor_evaluate(tr_predictor *predictor, const tr_source *source, double *loss,
                                double *accuracy, int64_t *confusion)
{
    struct tr_evaluation result;
    struct collector collector = {predictor, 0, NULL,
                                  tr_job_is_classification(predictor->job) ? confusion : NULL};
    if (confusion)
        memset(confusion, 0,
               (size_t)outputs_of(predictor) * (size_t)outputs_of(predictor) * sizeof *confusion);
    TR_TRY(run_source(predictor, source, 0, tr_source_info(source)->count, &collector, &result));
    *loss = result.loss;
    *accuracy = result.accuracy;
    return TR_OK;
}

tr_status tr_predictor_open_data(tr_predictor *predictor, const char *set, tr_source **out)
{
    enum tr_data_set which = TR_SET_TEST;
    TR_TRY(tr_data_set_find(set, &which));
    return tr_job_open_source(predictor->job, which, out);
}

tr_status tr_predictor_open_source(tr_predictor *predictor, const char *description, const char *directory,
                                   tr_source **out)
{
    return tr_source_open(description, directory, predictor->job->state, out);
}
