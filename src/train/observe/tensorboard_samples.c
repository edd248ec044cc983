/* Samples: the first examples of the first batch, and the network's predictions. Images are shown as
 * stored, sentences in a table.
 */
#include "train/observe/tensorboard_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"
#include "train/evaluate/given.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES     16
#define ANSWER_SIZE 64

/* The means to make samples. */
struct sampler {
    tr_tensorboard *board;
    const char *when;
    const float *parameters;
    const tr_source *source;
    tr_given *given;
    void *features; /* of an example */
    float *output;  /* the network's */
    float *values;  /* a label of numbers */
    struct tr_text table;
};

static tr_status make(struct sampler *sampler)
{
    const struct tr_job *job = sampler->board->job;
    size_t size = job->features == TR_FEATURE_IMAGE ? 1 : 4;
    const struct tr_source_info *info = tr_source_info(sampler->source);
    TR_TRY(tr_given_create(sampler->board->device, job, &sampler->given));
    sampler->features = tr_alloc((size_t)tr_source_capacity(sampler->source), size);
    sampler->output = tr_alloc((size_t)tr_shape_count(&job->model->output), sizeof *sampler->output);
    sampler->values = tr_alloc((size_t)info->values + 1, sizeof *sampler->values);
    return sampler->features && sampler->output && sampler->values ? TR_OK : TR_ENOMEM;
}

static void release(struct sampler *sampler)
{
    tr_given_destroy(&sampler->given);
    tr_free(sampler->features);
    tr_free(sampler->output);
    tr_free(sampler->values);
    tr_text_release(&sampler->table);
}

/* ---- answers ---- */

/* A class, by name where it has one; a slash would begin a group. */
static void name_class(const struct tr_job *job, int64_t class, char answer[ANSWER_SIZE])
{
    const struct tr_string_list *names = &job->input.classes;
    if (class < names->count)
        snprintf(answer, ANSWER_SIZE, "%s", names->item[class]);
    else
        snprintf(answer, ANSWER_SIZE, "%" PRId64, class);
    for (char *at = answer; *at; at++)
        if (*at == '/') *at = '-';
}

/* The first number, and a hint at others. */
static void name_values(const float *values, int64_t count, char answer[ANSWER_SIZE])
{
    snprintf(answer, ANSWER_SIZE, "%.4g%s", count > 0 ? (double)values[0] : 0, count > 1 ? " ..." : "");
}

static void name_prediction(const struct sampler *sampler, char answer[ANSWER_SIZE])
{
    const struct tr_job *job = sampler->board->job;
    int64_t count = tr_shape_count(&job->model->output), best = 0;
    if (!tr_job_is_classification(job)) {
        name_values(sampler->output, count, answer);
        return;
    }
    for (int64_t k = 1; k < count; k++)
        if (sampler->output[k] > sampler->output[best]) best = k;
    name_class(job, best, answer);
}

/* Reads an example, and runs the network. */
static tr_status ask(struct sampler *sampler, int64_t index, char label[ANSWER_SIZE],
                     char prediction[ANSWER_SIZE])
{
    const struct tr_job *job = sampler->board->job;
    const struct tr_source_info *info = tr_source_info(sampler->source);
    int64_t length;
    int32_t class = 0;
    bool classes = info->labels == TR_LABEL_CLASS;
    TR_TRY(tr_source_read(sampler->source, index, sampler->features, tr_source_capacity(sampler->source),
                          &length, classes ? (void *)&class : sampler->values));
    for (int32_t k = 1; !classes && tr_job_is_classification(job) && k < info->values; k++)
        if (sampler->values[k] > sampler->values[class]) class = k;
    if (classes || tr_job_is_classification(job))
        name_class(job, class, label);
    else
        name_values(sampler->values, info->values, label);
    const int32_t offset[] = {0, (int32_t)length};
    struct tr_given_examples example = {.count = 1};
    if (job->features == TR_FEATURE_IMAGE) {
        example.images = sampler->features;
    } else {
        example.tokens = sampler->features;
        example.offset = offset;
    }
    TR_TRY(tr_given_run(sampler->given, sampler->parameters, &example, sampler->output));
    name_prediction(sampler, prediction);
    return TR_OK;
}

/* ---- pictures ---- */

static tr_status add_picture(struct sampler *sampler, int number, const char *label, const char *prediction)
{
    const int64_t *stored = sampler->board->job->stored.size;
    const struct tr_image_size size = {(int32_t)stored[0], (int32_t)stored[1], (int32_t)stored[2]};
    struct tr_events_image image = {.height = size.height, .width = size.width, .channels = size.channels};
    uint8_t *png;
    char *tag = tr_format("%s/%02d label %s, prediction %s", sampler->when, number, label, prediction);
    if (!tag) return TR_ENOMEM;
    tr_status status = tr_image_encode(sampler->features, size, &png, &image.size);
    if (status == TR_OK) {
        image.png = png;
        status = tr_events_image(sampler->board->run, tag, &image);
        tr_free(png);
    }
    tr_free(tag);
    return status;
}

/* ---- sentences ---- */

/* Text that Markdown shows literally: HTML entities, and backslashes. */
static void add_literal(struct tr_text *text, const char *string)
{
    for (; *string; string++) {
        if (strchr("<>&|", *string)) {
            tr_text_addf(text, "&#%d;", *string);
            continue;
        }
        if (strchr("\\`*_{}[]()#+-.!~", *string)) tr_text_add(text, "\\");
        tr_text_add_bytes(text, *string == '\n' ? " " : string, 1);
    }
}

static tr_status add_sentence(struct sampler *sampler, int64_t index, const char *label,
                              const char *prediction)
{
    struct tr_text words = TR_TEXT_INIT;
    if (sampler->source->class->show) TR_TRY(sampler->source->class->show(sampler->source, index, &words));
    char *sentence;
    TR_TRY(tr_text_finish(&words, &sentence));
    tr_text_add(&sampler->table, "| ");
    add_literal(&sampler->table, sentence);
    tr_text_add(&sampler->table, " | ");
    add_literal(&sampler->table, label);
    tr_text_add(&sampler->table, " | ");
    add_literal(&sampler->table, prediction);
    tr_text_add(&sampler->table, " |\n");
    tr_free(sentence);
    return TR_OK;
}

static tr_status add_table(struct sampler *sampler)
{
    char *markdown;
    TR_TRY(tr_text_finish(&sampler->table, &markdown));
    tr_status status = tr_events_text(sampler->board->run, sampler->when, markdown);
    tr_free(markdown);
    return status;
}

/* ---- all ---- */

/* Whether examples can be shown with a prediction: PNG has no other numbers of channels. */
static bool can_show(const struct tr_job *job)
{
    if (tr_job_is_of_tokens(job) || tr_job_pixels(job) > 0)
        return false; /* an example has no single prediction */
    if (job->features == TR_FEATURE_TOKENS) return job->parts.count == 0;
    return job->features == TR_FEATURE_IMAGE && (job->stored.size[2] == 1 || job->stored.size[2] == 3);
}

static tr_status add_samples(struct sampler *sampler)
{
    const struct tr_job *job = sampler->board->job;
    bool pictures = job->features == TR_FEATURE_IMAGE;
    struct tr_order order;
    TR_TRY(make(sampler));
    TR_TRY(tr_job_order(job, &order));
    int64_t rows = tr_order_at(&order, 0).rows;
    if (!pictures) tr_text_add(&sampler->table, "| sentence | label | prediction |\n|---|---|---|\n");
    for (int i = 0; i < SAMPLES && i < rows; i++) {
        char label[ANSWER_SIZE], prediction[ANSWER_SIZE];
        int64_t index = tr_order_example(&order, 0, i);
        TR_TRY(ask(sampler, index, label, prediction));
        if (pictures)
            TR_TRY(add_picture(sampler, i, label, prediction));
        else
            TR_TRY(add_sentence(sampler, index, label, prediction));
    }
    return pictures ? TR_OK : add_table(sampler);
}

tr_status tensorboard_add_samples(tr_tensorboard *board, const char *when, const float *parameters)
{
    struct sampler sampler = {
        .board = board, .when = when, .parameters = parameters, .source = board->job->source[TR_SET_TRAIN]};
    if (!can_show(board->job)) return TR_OK;
    tr_status status = add_samples(&sampler);
    release(&sampler);
    return status;
}
