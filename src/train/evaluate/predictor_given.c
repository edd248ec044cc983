/* Predictions for examples in memory. */
#include "train/evaluate/predictor.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"

#include <inttypes.h>
#include <string.h>

/* Most tokens of texts that go through the network together, unless a single text is longer. */
#define TOKENS_TOGETHER (1 << 14)

/* ---- what a network answers ---- */

tr_status tr_predictor_check(const tr_predictor *predictor)
{
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    TR_TRY(tr_predictor_check_process(predictor));
    TR_TRY(tr_predictor_info(predictor, &info));
    if (!info.language_model) return TR_OK;
    return tr_fail(
        TR_EUNSUPPORTED,
        "the network of \"%s\" is a language model, which scores the token after each token; let it "
        "generate text, or evaluate it",
        predictor->path);
}

tr_status tr_predictor_check_rows(const tr_predictor *predictor)
{
    const bool pixels = tr_job_pixels(predictor->job) > 0;
    TR_TRY(tr_predictor_check(predictor));
    if (!tr_job_is_of_tokens(predictor->job) && !pixels) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED,
                   "the network of \"%s\" answers for each %s; take tr_predictor_batch() or "
                   "tr_predictor_run(), which hand over as many rows as an example has %ss",
                   predictor->path, pixels ? "pixel" : "token", pixels ? "pixel" : "token");
}

tr_status tr_predictor_check_features(const tr_predictor *predictor, enum tr_feature_kind given)
{
    static const char *const names[] = {"images", "numbers", "text"};
    TR_TRY(tr_predictor_check_process(predictor));
    if (predictor->job->features == given) return TR_OK;
    return tr_fail(TR_EINVAL, "the network of \"%s\" takes %s, not %s", predictor->path,
                   names[predictor->job->features], names[given]);
}

/* ---- a run ---- */

/* State of predicting examples. */
struct run {
    tr_predictor *predictor;
    int64_t count;
    const uint8_t *images;
    float *floats; /* [count][floats], filled and scaled */
    const char *const *texts;
    const int32_t *given;     /* tokens of all examples, instead of texts */
    const int64_t *begin;     /* [count + 1] where those of an example are */
    int32_t *length;          /* [count] tokens */
    int32_t *tokens, *offset; /* of those that go together, [room], [count + 1] */
    int64_t room;
    float *output; /* of those that go together */
    int64_t output_room;
};

static void release(struct run *run)
{
    tr_free(run->floats);
    tr_free(run->length);
    tr_free(run->tokens);
    tr_free(run->offset);
    tr_free(run->output);
}

static tr_status begin_floats(struct run *run, const float *values)
{
    tr_predictor *predictor = run->predictor;
    const int64_t floats = tr_shape_count(&predictor->job->stored), columns = predictor->columns.count;
    const size_t numbers = (size_t)(run->count * columns);
    float *given = tr_alloc(numbers, sizeof *given);
    if (!given) return TR_ENOMEM;
    memcpy(given, values, numbers * sizeof *given);
    tr_status status = tr_job_columns_fill(predictor->job, &predictor->columns, run->count, given);
    run->floats = given;
    if (status != TR_OK || predictor->scaling.count == 0) return status;
    if (columns != floats && !(run->floats = tr_alloc((size_t)(run->count * floats), sizeof *given)))
        status = TR_ENOMEM;
    if (status == TR_OK) tr_scaling_apply(&predictor->scaling, run->count, given, run->floats);
    if (run->floats != given) tr_free(given);
    return status;
}

static tr_status make_lengths(struct run *run)
{
    run->length = tr_alloc((size_t)run->count, sizeof *run->length);
    run->offset = tr_alloc((size_t)run->count + 1, sizeof *run->offset);
    return run->length && run->offset ? TR_OK : TR_ENOMEM;
}

static tr_status begin_tokens(struct run *run, const struct tr_examples *examples)
{
    const int32_t vocabulary = run->predictor->job->model->vocabulary;
    const int64_t *begin = examples->offsets;
    if (!begin) return tr_fail(TR_EINVAL, "tokens are given without offsets, which say where examples begin");
    TR_TRY(make_lengths(run));
    run->given = examples->tokens;
    run->begin = begin;
    for (int64_t i = 0; i < run->count; i++) {
        if (begin[0] != 0 || begin[i + 1] <= begin[i] || begin[i + 1] - begin[i] > TR_TOKENS_MAX)
            return tr_fail(TR_EINVAL,
                           "offsets: example %" PRId64 " has tokens %" PRId64 " to %" PRId64
                           "; they ascend from 0, and an example has 1 to %d tokens",
                           i + 1, begin[i], begin[i + 1], TR_TOKENS_MAX);
        run->length[i] = (int32_t)(begin[i + 1] - begin[i]);
    }
    for (int64_t i = 0; run->count > 0 && i < begin[run->count]; i++)
        if (run->given[i] < 0 || run->given[i] >= vocabulary)
            return tr_fail(TR_EINVAL,
                           "token %" PRId64 " is %" PRId32 "; the network knows %" PRId32 ", counted from 0",
                           i, run->given[i], vocabulary);
    return TR_OK;
}

static tr_status set_length(struct run *run, int64_t example, int64_t tokens)
{
    if (tokens == 0) return tr_fail(TR_EINVAL, "text %" PRId64 " has no words; leave it out", example + 1);
    if (tokens > TR_TOKENS_MAX)
        return tr_fail(TR_EINVAL, "text %" PRId64 " has %" PRId64 " words; at most %d are taken", example + 1,
                       tokens, TR_TOKENS_MAX);
    run->length[example] = (int32_t)tokens;
    return TR_OK;
}

/* Token numbers from another program are all known. */
static tr_status check_ids(const struct run *run)
{
    const tr_vocabulary *vocabulary = run->predictor->vocabulary;
    for (int64_t i = 0; i < run->count; i++) {
        const int64_t wrong = tr_vocabulary_no_id(vocabulary, run->texts[i], strlen(run->texts[i]));
        if (wrong >= 0)
            return tr_fail(TR_EINVAL,
                           "text %" PRId64 ": token %" PRId64
                           " is no number from 0 to %d; give the numbers that the "
                           "tokenizer gave",
                           i, wrong, (int)tr_vocabulary_size(vocabulary) - 1);
    }
    return TR_OK;
}

static tr_status begin_texts(struct run *run)
{
    const tr_predictor *predictor = run->predictor;
    TR_TRY(tr_predictor_open_vocabulary(run->predictor));
    TR_TRY(make_lengths(run));
    if (tr_vocabulary_bpe(predictor->vocabulary)) /* as no training writes it */
        return tr_fail(TR_EFORMAT, "checkpoint \"%s\" has subwords, which only language models read",
                       predictor->path);
    TR_TRY(check_ids(run));
    for (int64_t i = 0; i < run->count; i++)
        TR_TRY(set_length(run, i,
                          tr_vocabulary_length(predictor->vocabulary, run->texts[i], strlen(run->texts[i]))));
    return TR_OK;
}

static tr_status begin(struct run *run, const struct tr_examples *examples)
{
    tr_predictor *predictor = run->predictor;
    int given = !!examples->images + !!examples->floats + !!examples->texts + !!examples->tokens;
    if (examples->count < 0 || given != 1)
        return tr_fail(TR_EINVAL,
                       "%" PRId64 " examples in %d forms are given; give images, floats, texts or tokens",
                       examples->count, given);
    run->count = examples->count;
    run->images = examples->images;
    run->texts = examples->texts;
    TR_TRY(tr_predictor_check_features(predictor, examples->images   ? TR_FEATURE_IMAGE
                                                  : examples->floats ? TR_FEATURE_FLOATS
                                                                     : TR_FEATURE_TOKENS));
    if (predictor->job->parts.count > 0 || predictor->job->parts.text[0])
        return tr_fail(TR_EUNSUPPORTED,
                       "the network of \"%s\" takes examples of several sources; give them as a data set, "
                       "described by `join`",
                       predictor->path);
    if (examples->floats) TR_TRY(begin_floats(run, examples->floats));
    if (examples->texts) TR_TRY(begin_texts(run));
    if (examples->tokens) TR_TRY(begin_tokens(run, examples));
    if (predictor->given) return TR_OK;
    return tr_given_create(predictor->device, predictor->job, &predictor->given);
}

/* How many examples from `first` on go through the network together. */
static int64_t together(const struct run *run, int64_t first)
{
    int64_t most = run->predictor->job->train.evaluate_batch, tokens = 0, count = 0;
    if (most > run->count - first) most = run->count - first;
    if (!run->length) return most;
    for (; count < most; count++) {
        tokens += run->length[first + count];
        if (count > 0 && tokens > TOKENS_TOGETHER) break;
    }
    return count;
}

static tr_status encode(struct run *run, int64_t first, int64_t count)
{
    const tr_vocabulary *vocabulary = run->predictor->vocabulary;
    run->offset[0] = 0;
    for (int64_t i = 0; i < count; i++) run->offset[i + 1] = run->offset[i] + run->length[first + i];
    if (run->offset[count] > run->room) {
        tr_free(run->tokens);
        run->room = run->offset[count];
        run->tokens = tr_alloc((size_t)run->room, sizeof *run->tokens);
        if (!run->tokens) return TR_ENOMEM;
    }
    for (int64_t i = 0; i < count; i++) {
        if (run->given) {
            memcpy(run->tokens + run->offset[i], run->given + run->begin[first + i],
                   (size_t)run->length[first + i] * sizeof *run->tokens);
            continue;
        }
        const char *text = run->texts[first + i];
        tr_vocabulary_encode(vocabulary, text, strlen(text), run->length[first + i],
                             run->tokens + run->offset[i]);
    }
    return TR_OK;
}

static tr_status make_output(struct run *run, int64_t floats)
{
    if (floats <= run->output_room) return TR_OK;
    tr_free(run->output);
    run->output_room = floats;
    run->output = tr_alloc((size_t)floats, sizeof *run->output);
    return run->output ? TR_OK : TR_ENOMEM;
}

/* The rows of the answers to `count` encoded examples. */
static int64_t rows_of(const struct run *run, int64_t count)
{
    const struct tr_job *job = run->predictor->job;
    return tr_job_is_of_tokens(job) ? run->offset[count] : count * tr_loss_labels(&job->model->loss);
}

/* Predicts the examples from `first` on. `output` receives the answers; NULL: run->output does. */
static tr_status compute(struct run *run, int64_t first, int64_t count, float *output)
{
    tr_predictor *predictor = run->predictor;
    const int64_t *stored = predictor->job->stored.size;
    struct tr_given_examples given = {.count = count};
    if (run->length) TR_TRY(encode(run, first, count));
    if (run->images) given.images = run->images + first * stored[0] * stored[1] * stored[2];
    if (run->floats) given.floats = run->floats + first * tr_shape_count(&predictor->job->stored);
    if (run->length) {
        given.tokens = run->tokens;
        given.offset = run->offset;
    }
    int64_t rows = rows_of(run, count);
    if (!output) TR_TRY(make_output(run, rows * tr_predictor_outputs(predictor)));
    if (!output) output = run->output;
    TR_TRY(tr_given_run(predictor->given, predictor->parameters, &given, output));
    tr_answer(predictor->job, rows, output);
    return TR_OK;
}

static tr_status run_all(struct run *run, tr_prediction_listener listener, void *user)
{
    bool of_tokens = tr_job_is_of_tokens(run->predictor->job);
    for (int64_t first = 0, count; first < run->count; first += count) {
        count = together(run, first);
        TR_TRY(compute(run, first, count, NULL));
        const struct tr_prediction prediction = {
            .first = first,
            .count = count,
            .rows = rows_of(run, count),
            .output = run->output,
            .offset = of_tokens ? run->offset : NULL,
            .tokens = of_tokens ? run->tokens : NULL,
        };
        if (listener(user, &prediction))
            return tr_fail(TR_EINTERRUPTED, "the predictions were ended after %" PRId64 " examples",
                           first + count);
    }
    return TR_OK;
}

tr_status tr_predictor_batch(tr_predictor *predictor, const struct tr_examples *given,
                             tr_prediction_listener listener, void *user)
{
    static const struct tr_examples none = TR_EXAMPLES_INIT;
    struct tr_examples examples;
    struct run run = {.predictor = predictor};
    TR_TRY(tr_sized_take(given, &none, sizeof none, "TR_EXAMPLES_INIT", &examples));
    if (!examples.tokens) TR_TRY(tr_predictor_check(predictor));
    tr_status status = begin(&run, &examples);
    if (status == TR_OK) status = run_all(&run, listener, user);
    release(&run);
    return status;
}

/* ---- one example ---- */

static tr_status predict_one(tr_predictor *predictor, const struct tr_examples *example, float *output)
{
    struct run run = {.predictor = predictor};
    TR_TRY(tr_predictor_check_rows(predictor));
    tr_status status = begin(&run, example);
    if (status == TR_OK) status = compute(&run, 0, 1, output);
    release(&run);
    return status;
}

tr_status tr_predictor_image(tr_predictor *predictor, const uint8_t *image, float *output)
{
    const struct tr_examples example = {.count = 1, .images = image};
    return predict_one(predictor, &example, output);
}

tr_status tr_predictor_floats(tr_predictor *predictor, const float *values, float *output)
{
    const struct tr_examples example = {.count = 1, .floats = values};
    return predict_one(predictor, &example, output);
}

tr_status tr_predictor_text(tr_predictor *predictor, const char *text, float *output)
{
    const struct tr_examples example = {.count = 1, .texts = &text};
    return predict_one(predictor, &example, output);
}
