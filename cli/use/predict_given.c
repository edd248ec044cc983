/* Predictions for single images, numbers and texts, from the command line or line by line from standard
 * input.
 */
#include "cli/terminal/output.h"
#include "cli/use/predict.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/csv_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Lines in a batch: enough to keep a large network busy, few enough for the memory of images. */
#define LINES_TOGETHER 1024
#define BYTES_TOGETHER ((int64_t)1 << 28)

/* A batch on its way. */
struct work {
    struct cli_predict *predict;
    const struct cli_given *given;
    const struct cli_input_line *line; /* [count] */
    int64_t count;
    char separator;    /* of numbers; 0: unknown */
    uint8_t *pixels;   /* or */
    float *values;     /* or */
    const char **text; /* [room] examples, by the kind */
    int64_t room;
    const char **word; /* of an example's tokens, in its text */
};

static void release(struct work *work)
{
    tr_free(work->pixels);
    tr_free(work->values);
    tr_free(work->text);
}

static size_t elements(const struct cli_predict *predict)
{
    const struct tr_predict_info *info = &predict->info;
    return info->features == TR_FEATURE_IMAGE
               ? (size_t)info->height * (size_t)info->width * (size_t)info->channels
               : (size_t)info->floats;
}

static tr_status make_room(struct work *work)
{
    size_t size = elements(work->predict), count = (size_t)work->count;
    if (work->count <= work->room) return TR_OK;
    release(work);
    work->pixels = NULL;
    work->values = NULL;
    work->text = NULL;
    work->room = work->count;
    if (work->given->kind == TR_FEATURE_IMAGE) work->pixels = tr_alloc(count, size + 1);
    if (work->given->kind == TR_FEATURE_FLOATS) work->values = tr_alloc(count, (size + 1) * sizeof(float));
    if (work->given->kind == TR_FEATURE_TOKENS) work->text = tr_alloc(count, sizeof *work->text);
    return work->pixels || work->values || work->text ? TR_OK : TR_ENOMEM;
}

/* ---- reading ---- */

static int32_t names_of(const void *predictor, int32_t column)
{
    return tr_predictor_category_count(predictor, column);
}

static tr_status find_name(const void *predictor, int32_t column, const char *name, float *value)
{
    return tr_predictor_category(predictor, column, name, value);
}

/* On standard input the first line may name the columns. *names: it does. */
static tr_status read_values(struct work *work, int64_t i, float *values, bool *names)
{
    const struct cli_input_line *line = &work->line[i];
    struct tr_lines lines = tr_lines_of(work->given->name, line->text, strlen(line->text));
    bool first = work->separator == 0, named = false;
    const struct tr_csv_namer own = {names_of, find_name, work->predict->predictor};
    for (int32_t c = 0; c < work->predict->info.floats; c++)
        named |= names_of(work->predict->predictor, c) > 0;
    const struct tr_csv_namer *namer = named ? &own : NULL;
    tr_lines_next(&lines);
    lines.number = line->number + 1;
    if (first) work->separator = tr_csv_guess(lines.line, lines.length);
    *names = first && work->given->may_name && tr_csv_is_names(&lines, work->separator, namer);
    return *names ? TR_OK : tr_csv_values(&lines, work->separator, work->predict->info.floats, namer, values);
}

static tr_status read_examples(struct work *work)
{
    size_t size = elements(work->predict);
    bool names = false;
    for (int64_t i = 0; i < work->count; i++) {
        const char *text = work->line[i].text;
        if (work->text) work->text[i] = text;
        if (work->pixels)
            TR_TRY(cli_predict_read_image(work->predict, text, work->pixels + size * (size_t)i));
        if (!work->values) continue;
        if (work->given->pictures) {
            TR_TRY(cli_predict_read_numbers(work->predict, text, work->values + size * (size_t)i));
            continue;
        }
        TR_TRY(read_values(work, i, work->values + size * (size_t)i, &names));
        if (!names) continue;
        /* It is not an example. */
        work->line++;
        work->count--;
        i--;
    }
    return TR_OK;
}

/* ---- answers ---- */

/* The words of a text, cut out of a copy. */
static tr_status add_tagged(const struct work *work, struct cli_prediction *one)
{
    tr_predictor *predictor = work->predict->predictor;
    int64_t count, again;
    TR_TRY(tr_predictor_tokens(predictor, one->input, 0, NULL, NULL, &count, NULL));
    size_t bytes = strlen(one->input), *place = tr_alloc((size_t)count, 2 * sizeof *place);
    const char **word = tr_alloc((size_t)count, sizeof *word);
    char *copy = tr_alloc(bytes + (size_t)count, 1), *at = copy;
    tr_status status = place && word && copy ? TR_OK : TR_ENOMEM;
    if (status == TR_OK)
        status = tr_predictor_tokens(predictor, one->input, count, place, place + count, &again, NULL);
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        size_t length = place[count + i] - place[i];
        memcpy(at, one->input + place[i], length);
        at[length] = '\0';
        word[i] = at;
        at += length + 1;
    }
    one->word = word;
    one->words = count;
    if (status == TR_OK) status = cli_predictions_add(&work->predict->predictions, one);
    tr_free(copy);
    tr_free(word);
    tr_free(place);
    return status;
}

static tr_status add(void *user, const struct tr_prediction *prediction, int64_t i)
{
    const struct work *work = user;
    struct cli_predict *predict = work->predict;
    const int64_t pixels = cli_prediction_pixels(&predict->info);
    int64_t row = prediction->offset ? prediction->offset[i] : i * pixels;
    const struct cli_input_line *line = &work->line[prediction->first + i];
    struct cli_prediction one = {
        .example = line->number,
        .input = line->text,
        .rows = prediction->offset ? prediction->offset[i + 1] - row : pixels,
        .output = prediction->output + row * predict->info.outputs,
    };
    if (predict->options->show && work->pixels)
        TR_TRY(cli_predict_show_image(predict,
                                      work->pixels + elements(predict) * (size_t)(prediction->first + i)));
    return prediction->offset ? add_tagged(work, &one) : cli_predictions_add(&predict->predictions, &one);
}

/* A network that makes one text of another. */
static tr_status translate(struct work *work, bool *unread)
{
    struct cli_predict *predict = work->predict;
    char *written;
    *unread = false;
    for (int64_t i = 0; i < work->count && !*unread; i++) {
        const struct cli_input_line *line = &work->line[i];
        TR_TRY(tr_predictor_translate(predict->predictor, line->text, &written));
        TR_TRY(cli_predict_add_text(predict, line->number, line->text, written, NULL, unread));
    }
    return TR_OK;
}

/* *unread: the reader of the answers has gone. */
static tr_status predict(struct work *work, bool *unread)
{
    struct tr_examples examples = TR_EXAMPLES_INIT;
    if (work->predict->info.two_texts) return translate(work, unread);
    TR_TRY(make_room(work));
    TR_TRY(read_examples(work));
    examples.count = work->count;
    examples.images = work->pixels;
    examples.floats = work->values;
    examples.texts = work->text;
    struct cli_predict_taker taker = {.predict = work->predict, .add = add, .user = work};
    tr_status status = tr_predictor_batch(work->predict->predictor, &examples, cli_predict_take, &taker);
    return cli_predict_taken(&taker, status, unread);
}

/* ---- where examples come from ---- */

static tr_status check_kind(const struct cli_predict *predict, const struct cli_given *given)
{
    static const char *const takes[] = {"images", "numbers", "texts"};
    const struct tr_predict_info *info = &predict->info;
    if (info->features != given->kind)
        return tr_fail(TR_EINVAL, "%s: the network of \"%s\" takes %s", given->name, info->checkpoint,
                       takes[info->features]);
    if (info->features == TR_FEATURE_FLOATS && info->floats == 0)
        return tr_fail(
            TR_EINVAL,
            "%s: the network of \"%s\" takes examples of several sources; give --set-name, or --data "
            "with a `join` of sources",
            given->name, info->checkpoint);
    return TR_OK;
}

tr_status cli_predict_given(struct cli_predict *predict_, const struct cli_given *given,
                            const struct tr_string_list *list)
{
    struct work work = {.predict = predict_, .given = given, .count = list->count};
    bool unread;
    TR_TRY(check_kind(predict_, given));
    struct cli_input_line *line = tr_alloc((size_t)list->count, sizeof *line);
    if (!line) return TR_ENOMEM;
    for (int32_t i = 0; i < list->count; i++)
        line[i] = (struct cli_input_line){.number = i, .text = list->item[i]};
    work.line = line;
    tr_status status = cli_predict_begin(predict_, TR_LABEL_NONE, true, list->count);
    if (status == TR_OK) status = predict(&work, &unread);
    release(&work);
    tr_free(line);
    return status;
}

/* How many lines are read at a time. */
static int64_t together(const struct cli_predict *predict)
{
    int64_t bytes = (int64_t)elements(predict) * (predict->info.features == TR_FEATURE_IMAGE ? 1 : 4) + 1;
    int64_t most = BYTES_TOGETHER / bytes;
    return most < 1 ? 1 : most > LINES_TOGETHER ? LINES_TOGETHER : most;
}

static tr_status read_lines(struct work *work, struct cli_input_lines *lines)
{
    bool unread = false;
    TR_TRY(cli_predict_begin(work->predict, TR_LABEL_NONE, true, -1));
    while (!unread) {
        TR_TRY(cli_input_lines_next(lines));
        if (lines->count == 0) break;
        work->line = lines->line;
        work->count = lines->count;
        TR_TRY(predict(work, &unread));
    }
    if (work->predict->predictions.examples > 0 || unread) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "nothing to predict: standard input has no lines; give %s, --set-name test or --data, or "
                   "lines",
                   work->given->kind == TR_FEATURE_IMAGE    ? "--image FILE, --idx FILE"
                   : work->given->kind == TR_FEATURE_FLOATS ? "--values X,..."
                                                            : "--text LINE");
}

tr_status cli_predict_lines(struct cli_predict *predict_)
{
    static const char *const hints[] = {"type the name of an image file a line",
                                        "type the numbers of an example a line", "type a text a line"};
    const struct cli_given given = {predict_->info.features, "standard input", true};
    struct work work = {.predict = predict_, .given = &given};
    struct cli_input_lines lines;
    TR_TRY(check_kind(predict_, &given));
    if (isatty(STDIN_FILENO)) cli_message("%s; Ctrl-D ends", hints[given.kind]);
    tr_status status = cli_input_lines_begin(together(predict_), &lines);
    if (status == TR_OK) status = read_lines(&work, &lines);
    release(&work);
    cli_input_lines_release(&lines);
    return status;
}
