/* Predictions for data sets. */
#include "cli/terminal/output.h"
#include "cli/use/predict.h"
#include "cli/use/predictor.h"
#include "cli/use/ranges.h"
#include "cli/terminal/terminal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* A data set on its way. */
struct work {
    struct cli_predict *predict;
    const tr_source *source;
    const char *name;
    const char **word; /* [room] of an example's tokens */
    int64_t room;
};

static tr_status show(const struct work *work, int64_t index)
{
    char *text;
    TR_TRY(tr_source_show(work->source, index, 1, cli_terminal_width(STDOUT_FILENO), &text));
    cli_print(text);
    return TR_OK;
}

static void free_words(struct work *work, int64_t count)
{
    for (int64_t i = 0; i < count; i++) tr_text_free((char *)work->word[i]);
}

static tr_status read_words(struct work *work, const int32_t *tokens, int64_t count)
{
    if (count > work->room) {
        tr_free(work->word);
        work->room = count;
        work->word = tr_alloc((size_t)count, sizeof *work->word);
        if (!work->word) return TR_ENOMEM;
    }
    for (int64_t i = 0; i < count; i++) {
        char *word;
        tr_status status = tr_predictor_word(work->predict->predictor, tokens[i], &word);
        if (status != TR_OK) {
            free_words(work, i);
            return status;
        }
        work->word[i] = word;
    }
    return TR_OK;
}

static tr_status add(void *user, const struct tr_prediction *prediction, int64_t i)
{
    struct work *work = user;
    struct cli_predict *predict = work->predict;
    const int64_t pixels = cli_prediction_pixels(&predict->info);
    int64_t row = prediction->offset ? prediction->offset[i] : i * pixels;
    char input[512];
    struct cli_prediction one = {
        .example = prediction->first + i,
        .input = input,
        .rows = prediction->offset ? prediction->offset[i + 1] - row : pixels,
        .output = prediction->output + row * predict->info.outputs,
        .labels = prediction->labels ? prediction->labels + row : NULL,
        .targets = prediction->targets ? prediction->targets + i * predict->info.targets : NULL,
    };
    snprintf(input, sizeof input, "%s[%" PRId64 "]", work->name, one.example);
    if (predict->options->show) TR_TRY(show(work, one.example));
    if (!prediction->offset) return cli_predictions_add(&predict->predictions, &one);
    TR_TRY(read_words(work, prediction->tokens + row, one.rows));
    one.word = work->word;
    one.words = one.rows;
    tr_status status = cli_predictions_add(&predict->predictions, &one);
    free_words(work, one.rows);
    return status;
}

/* A network that makes one text of another. */
static tr_status translate(const struct work *work, const struct tr_example_range *range, bool *unread)
{
    struct cli_predict *predict = work->predict;
    char input[512], *written, *truth;
    for (int64_t i = range->first; i < range->end && !*unread; i++) {
        TR_TRY(tr_predictor_translate_example(predict->predictor, work->source, i, &written, &truth));
        snprintf(input, sizeof input, "%s[%" PRId64 "]", work->name, i);
        TR_TRY(cli_predict_add_text(predict, i, input, written, truth, unread));
    }
    return TR_OK;
}

static tr_status run(struct cli_predict *predict, const tr_source *source, const char *name)
{
    struct work work = {.predict = predict, .source = source, .name = name};
    struct cli_predict_taker taker = {.predict = predict, .add = add, .user = &work};
    const struct tr_source_info *facts = tr_source_info(source);
    struct tr_example_range *ranges;
    int64_t count, expected = 0;
    bool unread = false;
    TR_TRY(cli_ranges_read(predict->options->index, facts->count, name, &ranges, &count));
    for (int64_t i = 0; i < count; i++) expected += ranges[i].end - ranges[i].first;
    tr_status status = cli_predict_begin(predict, facts->labels, false, expected);
    for (int64_t i = 0; i < count && status == TR_OK && predict->info.two_texts && !unread; i++)
        status = translate(&work, &ranges[i], &unread);
    if (status == TR_OK && !predict->info.two_texts) {
        status = tr_predictor_run(predict->predictor, source, ranges, count, cli_predict_take, &taker);
        status = cli_predict_taken(&taker, status, &unread);
    }
    tr_free(ranges);
    tr_free(work.word);
    return status;
}

tr_status cli_predict_set(struct cli_predict *work, const char *set_name, const char *data, const char *name)
{
    tr_source *source;
    TR_TRY(cli_predictor_open(work->predictor, set_name, data, &source));
    tr_status status = run(work, source, name);
    tr_source_close(&source);
    return status;
}

tr_status cli_predict_idx(struct cli_predict *work)
{
    struct tr_text text = TR_TEXT_INIT;
    char *description;
    tr_text_add(&text, "{idx: {images: ");
    tr_text_add_quoted(&text, work->options->idx);
    tr_text_add(&text, "}}");
    TR_TRY(tr_text_finish(&text, &description));
    tr_status status = cli_predict_set(work, NULL, description, work->options->idx);
    tr_free(description);
    return status;
}
