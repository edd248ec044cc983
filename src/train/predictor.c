/* Prediction with the network of a checkpoint. */
#include "trireme/predict.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "data/store.h"
#include "data/vocabulary.h"
#include "train/evaluate.h"
#include "train/generator.h"
#include "job/job.h"
#include "train/single.h"
#include "job/tensors.h"
#include "train/answer.h"

#include <string.h>

struct tr_predictor {
    tr_store *store; /* that data come through */
    struct tr_job *job;
    tr_device *device;
    float *parameters; /* device: an arena, averages where wanted and kept */
    char *path;
    char *skipped; /* what was passed over to get to this checkpoint, or "" */
    char hash[TR_SHA256_TEXT];
    int64_t step;
    tr_single *single;          /* made when first needed */
    tr_vocabulary *vocabulary;  /* likewise */
    struct tr_metrics *metrics; /* of the last evaluation, or NULL */
    struct tr_scaling scaling;  /* of numbers */
    float *scaled;              /* room for an example of them */
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
    struct tr_job_settings as_it_is = {0};
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    predictor->step = facts->step;
    memcpy(predictor->hash, facts->parameter_hash, strlen(facts->parameter_hash) + 1);
    predictor->path = tr_strdup(tr_checkpoint_path(checkpoint));
    const char *skipped = tr_checkpoint_skipped(checkpoint);
    predictor->skipped = tr_strdup(skipped ? skipped : "");
    if (!predictor->path || !predictor->skipped) return TR_ENOMEM;
    TR_TRY(tr_store_create(NULL, settings->data_cache, settings->data_cache_bytes, &predictor->store));
    tr_store_defer(predictor->store);
    as_it_is.store = predictor->store;
    TR_TRY(tr_job_restore(checkpoint, &as_it_is, &predictor->job));
    TR_TRY(tr_job_scaling(predictor->job, &predictor->scaling));
    predictor->scaled = tr_alloc((size_t)predictor->scaling.count + 1, sizeof *predictor->scaled);
    if (!predictor->scaled) return TR_ENOMEM;
    const struct tr_device_choice device = {.name = settings->device ? settings->device : "cpu",
                                            .threads = settings->threads,
                                            .isa = settings->isa,
                                            .cache = settings->program_cache};
    TR_TRY(tr_device_open(&device, &predictor->device));
    return load_parameters(predictor, checkpoint, settings->use_average);
}

tr_status tr_predictor_create(const struct tr_predict_settings *given, tr_predictor **out)
{
    static const struct tr_predict_settings defaults = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_settings full, *settings = &full;
    *out = NULL;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_PREDICT_SETTINGS_INIT", settings));
    if (!settings->checkpoint) return tr_fail(TR_EINVAL, "no checkpoint is given to predict with");
    tr_checkpoint *checkpoint;
    TR_TRY(settings->best ? tr_checkpoint_open_best(settings->checkpoint, &checkpoint)
                          : tr_checkpoint_open(settings->checkpoint, &checkpoint));
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
    tr_store_destroy(&predictor->store);
    tr_scaling_release(&predictor->scaling);
    tr_metrics_destroy(&predictor->metrics);
    tr_free(predictor->scaled);
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
    const struct tr_predict_info facts = {
        .name = job->file.name,
        .checkpoint = predictor->path,
        .skipped = predictor->skipped,
        .hash = predictor->hash,
        .step = predictor->step,
        .features = job->features,
        .height = image ? (int32_t)stored[0] : 0,
        .width = image ? (int32_t)stored[1] : 0,
        .channels = image ? (int32_t)stored[2] : 0,
        .floats = job->features == TR_FEATURE_FLOATS && job->parts.count == 0 ? (int32_t)stored[0] : 0,
        .outputs = outputs_of(predictor),
        .classification = tr_job_is_classification(job),
        .accuracy = tr_job_has_accuracy(job),
        .class_names = classes->count == outputs_of(predictor) ? (const char *const *)classes->item : NULL,
        .of_tokens = tr_job_is_of_tokens(job),
    };
    return tr_sized_give(&facts, sizeof facts, "TR_PREDICT_INFO_INIT", info);
}

/* ---- predicting ---- */

static tr_status check_features(const tr_predictor *predictor, enum tr_feature_kind given)
{
    static const char *const names[] = {"images", "numbers", "text"};
    if (predictor->job->features == given) return TR_OK;
    return tr_fail(TR_EINVAL, "the network of \"%s\" takes %s, not %s", predictor->path,
                   names[predictor->job->features], names[given]);
}

/* Predictions are for examples. */
static tr_status check_output(const tr_predictor *predictor)
{
    if (!tr_job_is_of_tokens(predictor->job)) return TR_OK;
    return tr_fail(
        TR_EUNSUPPORTED,
        "the network of \"%s\" scores every token, not examples; evaluate it or let it generate text",
        predictor->path);
}

static tr_status predict_example(tr_predictor *predictor, const struct tr_example *example, float *output)
{
    TR_TRY(check_output(predictor));
    if (!predictor->single) TR_TRY(tr_single_create(predictor->device, predictor->job, &predictor->single));
    TR_TRY(tr_single_run(predictor->single, predictor->parameters, example, output));
    tr_answer(predictor->job, 1, output);
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
    if (predictor->job->parts.count > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "the network of \"%s\" takes examples of several sources; give them as a data set, "
                       "described by `join`",
                       predictor->path);
    struct tr_example example = {.floats = values};
    if (predictor->scaling.count > 0) {
        tr_scaling_apply(&predictor->scaling, 1, values, predictor->scaled);
        example.floats = predictor->scaled;
    }
    return predict_example(predictor, &example, output);
}

static tr_status open_vocabulary(tr_predictor *predictor)
{
    int32_t classes;
    if (predictor->vocabulary) return TR_OK;
    if (!predictor->job->state)
        return tr_fail(TR_EFORMAT, "checkpoint \"%s\" keeps no vocabulary", predictor->path);
    return tr_vocabulary_read(predictor->job->state, &predictor->vocabulary, &classes);
}

tr_status tr_predictor_text(tr_predictor *predictor, const char *text, float *output)
{
    TR_TRY(check_features(predictor, TR_FEATURE_TOKENS));
    TR_TRY(open_vocabulary(predictor));
    size_t length = strlen(text);
    int64_t count = tr_vocabulary_length(predictor->vocabulary, text, length);
    if (count == 0) return tr_fail(TR_EINVAL, "the text has no words");
    if (count > (1 << 20))
        return tr_fail(TR_EINVAL, "the text has %lld words; at most %d are taken", (long long)count, 1 << 20);
    int32_t *tokens = tr_alloc((size_t)count, sizeof *tokens);
    if (!tokens) return TR_ENOMEM;
    tr_vocabulary_encode(predictor->vocabulary, text, length, count, tokens);
    struct tr_example example = {.tokens = tokens, .token_count = count};
    tr_status status = predict_example(predictor, &example, output);
    tr_free(tokens);
    return status;
}

/* ---- generating ---- */

/* Which token of a prompt is unknown, -1 for none. Bytes all are known. */
static int64_t find_unknown(const tr_vocabulary *vocabulary, const char *prompt, const int32_t *tokens,
                            int64_t count)
{
    for (int64_t i = 0; tr_vocabulary_has_unknown(vocabulary) && i < count; i++)
        if (tokens[i] == 0) return i;
    return tr_vocabulary_no_id(vocabulary, prompt, strlen(prompt));
}

/* The tokens of a prompt; returned, free with tr_free(), also after a failure. */
static tr_status read_prompt(tr_predictor *predictor, const char *prompt, int32_t **out, int64_t *count)
{
    TR_TRY(open_vocabulary(predictor));
    const tr_vocabulary *vocabulary = predictor->vocabulary;
    size_t length = strlen(prompt);
    *count = tr_vocabulary_tokens(vocabulary, prompt, length);
    if (*count == 0) return tr_fail(TR_EINVAL, "the prompt is empty; give at least one token to go on from");
    if (*count > TR_TOKENS_MAX)
        return tr_fail(TR_EINVAL, "the prompt has %lld tokens; at most %d are taken", (long long)*count,
                       TR_TOKENS_MAX);
    int32_t *tokens = tr_alloc((size_t)*count, sizeof *tokens);
    if (!tokens) return TR_ENOMEM;
    tr_vocabulary_encode(vocabulary, prompt, length, *count, tokens);
    int64_t unknown = find_unknown(vocabulary, prompt, tokens, *count);
    *out = tokens;
    if (unknown < 0) return TR_OK;
    size_t begin = tr_vocabulary_reach(vocabulary, prompt, length, unknown);
    size_t end = tr_vocabulary_reach(vocabulary, prompt, length, unknown + 1);
    return tr_fail(TR_EINVAL, "the prompt's token %lld, \"%.*s\", is none of the %d that the network knows",
                   (long long)unknown + 1, (int)(end - begin < 80 ? end - begin : 80), prompt + begin,
                   (int)tr_vocabulary_size(vocabulary));
}

static tr_status check_generate(const struct tr_generate_settings *settings)
{
    if (!settings->prompt) return tr_fail(TR_EINVAL, "no prompt is given to go on from");
    if (settings->tokens < 1 || settings->tokens > 1 << 30)
        return tr_fail(TR_EINVAL, "%lld tokens are wanted; give 1 to %d", (long long)settings->tokens,
                       1 << 30);
    if (!(settings->temperature >= 0 && settings->temperature <= 1e6))
        return tr_fail(TR_EINVAL, "temperature is %g; give 0 to 1e6", settings->temperature);
    if (settings->top_k < 0 || settings->context < 0)
        return tr_fail(TR_EINVAL, "top_k is %d and context %lld; neither may be negative",
                       (int)settings->top_k, (long long)settings->context);
    return TR_OK;
}

static tr_status generate(tr_predictor *predictor, const struct tr_generate_settings *settings,
                          tr_generator *generator, tr_text_listener listener, void *user)
{
    const tr_vocabulary *vocabulary = predictor->vocabulary;
    const struct tr_decoding sampling = {
        .temperature = (float)settings->temperature,
        .top_k = settings->top_k,
        .has_unknown = tr_vocabulary_has_unknown(vocabulary),
        .seed = settings->seed,
    };
    struct tr_text piece = TR_TEXT_INIT;
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < settings->tokens; i++) {
        int32_t token;
        status = tr_generator_next(generator, &sampling, &token);
        if (status != TR_OK) break;
        piece.length = 0;
        tr_vocabulary_decode(vocabulary, &token, 1, true, &piece);
        if (piece.failed)
            status = TR_ENOMEM;
        else if (listener && listener(user, piece.bytes, piece.length))
            status = tr_fail(TR_EINTERRUPTED, "the text was ended after %lld tokens", (long long)i + 1);
    }
    tr_text_release(&piece);
    return status;
}

tr_status tr_predictor_generate(tr_predictor *predictor, const struct tr_generate_settings *given,
                                tr_text_listener listener, void *user)
{
    static const struct tr_generate_settings defaults = TR_GENERATE_SETTINGS_INIT;
    struct tr_generate_settings settings;
    tr_generator *generator;
    int32_t *tokens = NULL;
    int64_t count;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_GENERATE_SETTINGS_INIT", &settings));
    TR_TRY(check_generate(&settings));
    TR_TRY(tr_generator_create(predictor->device, predictor->job, predictor->parameters, settings.context,
                               &generator));
    tr_status status = read_prompt(predictor, settings.prompt, &tokens, &count);
    if (status == TR_OK) status = tr_generator_begin(generator, tokens, count);
    if (status == TR_OK) status = generate(predictor, &settings, generator, listener, user);
    tr_free(tokens);
    tr_generator_destroy(&generator);
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

static tr_status collect(void *user, int64_t first, int64_t examples, int64_t rows, const float *output,
                         const int32_t *labels)
{
    (void)examples;
    struct collector *collector = user;
    int32_t width = outputs_of(collector->predictor);
    if (collector->output) {
        float *to = collector->output + (first - collector->first) * width;
        memcpy(to, output, (size_t)(rows * width) * sizeof *to);
        tr_answer(collector->predictor->job, rows, to);
    }
    for (int64_t r = 0; collector->confusion && labels && r < rows; r++) {
        int32_t best = 0;
        if (labels[r] < 0) continue;
        for (int32_t k = 1; k < width; k++)
            if (output[r * width + k] > output[r * width + best]) best = k;
        collector->confusion[(int64_t)labels[r] * width + best]++;
    }
    return TR_OK;
}

static tr_status run_source(tr_predictor *predictor, const tr_source *source, int64_t first, int64_t end,
                            struct collector *collector, struct tr_evaluated_row *rows, float *answers)
{
    tr_evaluator *evaluator;
    TR_TRY(tr_evaluator_create(predictor->device, predictor->job, source, NULL, false, &evaluator));
    tr_status status =
        tr_evaluator_run(evaluator, predictor->parameters, first, end, collect, collector, rows, answers);
    tr_evaluator_destroy(&evaluator);
    return status;
}

tr_status tr_predictor_source(tr_predictor *predictor, const tr_source *source, int64_t first, int64_t count,
                              float *output)
{
    int64_t all = tr_source_info(source)->count;
    if (first < 0 || count < 0 || first > all || count > all - first)
        return tr_fail(TR_EINVAL, "examples %lld to %lld are wanted, the source has %lld", (long long)first,
                       (long long)(first + count - 1), (long long)all);
    TR_TRY(check_output(predictor));
    struct collector collector = {predictor, first, output, NULL};
    TR_TRY(tr_job_check_source(predictor->job, source, "given", false));
    return run_source(predictor, source, first, first + count, &collector, NULL, NULL);
}

static tr_status measure(tr_predictor *predictor, const tr_source *source, struct collector *collector,
                         struct tr_evaluation *result)
{
    int64_t count = tr_source_info(source)->count, width = tr_metrics_width(predictor->job, count);
    struct tr_evaluated_row *rows = tr_alloc((size_t)count + 1, sizeof *rows);
    float *answers = width > 0 ? tr_alloc((size_t)(count * width), sizeof *answers) : NULL;
    tr_status status = rows && (answers || width == 0) ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = run_source(predictor, source, 0, count, collector, rows, answers);
    if (status == TR_OK) {
        *result = tr_evaluation_of(rows, count);
        status = tr_metrics_make(predictor->job, count, rows, answers, result->loss, &predictor->metrics);
    }
    tr_free(answers);
    tr_free(rows);
    return status;
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
    tr_metrics_destroy(&predictor->metrics);
    TR_TRY(tr_job_check_source(predictor->job, source, "given", true));
    TR_TRY(measure(predictor, source, &collector, &result));
    *loss = result.loss;
    *accuracy = result.accuracy;
    return TR_OK;
}

const struct tr_metrics *tr_predictor_metrics(const tr_predictor *predictor)
{
    return predictor->metrics;
}

tr_status tr_predictor_open_data(tr_predictor *predictor, const char *set, tr_source **out)
{
    enum tr_data_set which = TR_SET_TEST;
    TR_TRY(tr_data_set_find(set, &which));
    return tr_job_open_source(predictor->job, which, NULL, out);
}

bool tr_predictor_has_data(const tr_predictor *predictor, const char *set)
{
    for (int i = 0; i < TR_SETS; i++)
        if (strcmp(set, tr_data_set_names[i]) == 0)
            return tr_job_has_set(predictor->job, (enum tr_data_set)i);
    return false;
}

tr_status tr_predictor_open_source(tr_predictor *predictor, const char *description, const char *directory,
                                   tr_source **out)
{
    return tr_source_open_through(predictor->store, description, directory, predictor->job->state, out);
}
