#include "cli/use/predictions.h"

#include "cli/terminal/output.h"
#include "cli/use/predictor.h"
#include "cli/terminal/terminal.h"

#include "base/text/counted.h"
#include "base/threads/clock.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A file gets this many bytes at a time. */
#define PORTION (1 << 18)

static const struct cli_prediction_format *const formats[] = {
    &cli_predictions_csv,
    &cli_predictions_npy,
    &cli_predictions_jsonl,
    &cli_predictions_conll,
};
#define FORMATS (sizeof formats / sizeof formats[0])

tr_status cli_predictions_format(const char *path, const struct cli_prediction_format **out)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < FORMATS; i++) {
        size_t ending = strlen(formats[i]->ending);
        *out = formats[i];
        if (length > ending && strcmp(path + length - ending, formats[i]->ending) == 0) return TR_OK;
    }
    return tr_fail(
        TR_EINVAL,
        "--output: \"%s\" does not end in .csv, .npy, .jsonl or .conll, which says the form of the file",
        path);
}

int32_t cli_predictions_best(const float *output, int32_t classes)
{
    int32_t best = 0;
    for (int32_t k = 1; k < classes; k++)
        if (output[k] > output[best] || isnan(output[best])) best = k;
    return best;
}

void cli_predictions_count(const struct cli_predictions *predictions, const struct cli_prediction *prediction,
                           int64_t *count, double *right)
{
    const int32_t classes = predictions->info->outputs;
    int64_t labels = 0, hits = 0;
    for (int32_t k = 0; k < classes; k++) count[k] = 0;
    for (int64_t p = 0; p < prediction->rows; p++) {
        const int32_t best = cli_predictions_best(prediction->output + p * classes, classes);
        count[best]++;
        if (!prediction->labels || prediction->labels[p] < 0) continue;
        labels++;
        hits += prediction->labels[p] == best;
    }
    *right = labels > 0 ? (double)hits / (double)labels : NAN;
}

const char *cli_predictions_class(const struct cli_predictions *predictions, int32_t class, char buffer[16])
{
    if (class >= 0 && class < predictions->info->outputs)
        return cli_class_name(predictions->info, class, buffer);
    snprintf(buffer, 16, "%" PRId32, class);
    return buffer;
}

/* ---- on the way ---- */

static tr_status read_heads(struct cli_predictions *predictions, const tr_predictor *predictor)
{
    int32_t heads = predictions->info->heads;
    if (heads > CLI_PREDICTION_HEADS)
        return tr_fail(TR_EUNSUPPORTED, "the network has %" PRId32 " losses; at most %d are told apart",
                       heads, CLI_PREDICTION_HEADS);
    for (int32_t h = 0; h < heads; h++) {
        predictions->head[h] = (struct tr_predict_head)TR_PREDICT_HEAD_INIT;
        TR_TRY(tr_predictor_head(predictor, h, &predictions->head[h]));
    }
    return TR_OK;
}

tr_status cli_predictions_begin(struct cli_predictions *predictions, const tr_predictor *predictor)
{
    const struct cli_prediction_format *format = predictions->format;
    TR_TRY(read_heads(predictions, predictor));
    if (format->check) TR_TRY(format->check(predictions));
    if (predictions->masks) TR_TRY(cli_masks_begin(predictions));
    if (predictions->path) {
        TR_TRY(tr_file_replace_begin(NULL, predictions->path, 0, &predictions->file));
        predictions->open = true;
        cli_screen_begin(&predictions->screen, stderr);
    }
    predictions->start = tr_clock_seconds();
    tr_status status = format->begin ? format->begin(predictions) : TR_OK;
    if (status != TR_OK) cli_predictions_abandon(predictions);
    return status;
}

static tr_status hand_over(struct cli_predictions *predictions)
{
    struct tr_text *text = &predictions->text;
    if (text->failed) return TR_ENOMEM;
    if (text->length == 0) return TR_OK;
    if (!predictions->path) {
        cli_output_put(stdout, text->bytes, text->length);
    } else {
        TR_TRY(tr_file_write(&predictions->file.writer, text->bytes, text->length));
    }
    text->length = 0;
    return TR_OK;
}

tr_status cli_predictions_add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    const struct cli_prediction_format *format = predictions->format;
    if (predictions->masks) TR_TRY(cli_masks_add(predictions, prediction));
    TR_TRY(format->add(predictions, prediction));
    predictions->examples++;
    predictions->rows += prediction->rows;
    if (predictions->text.failed) return TR_ENOMEM;
    if (predictions->path && (predictions->text.length < PORTION || predictions->keep)) return TR_OK;
    return hand_over(predictions);
}

static double speed_of(const struct cli_predictions *predictions)
{
    double seconds = tr_clock_seconds() - predictions->start;
    return seconds > 0 ? (double)predictions->examples / seconds : 0;
}

bool cli_predictions_show(struct cli_predictions *predictions)
{
    char done[TR_TEXT_NUMBER_SIZE], all[TR_TEXT_NUMBER_SIZE], speed[TR_TEXT_NUMBER_SIZE], status[160],
        of[64] = "";
    if (!predictions->path) return cli_output_flush();
    if (predictions->expected > 0)
        snprintf(of, sizeof of, " of %s", tr_text_from_count(predictions->expected, all));
    snprintf(status, sizeof status, "%s%s examples, %s examples/s",
             tr_text_from_count(predictions->examples, done), of,
             tr_text_from_count((int64_t)(speed_of(predictions) + 0.5), speed));
    cli_screen_status(&predictions->screen, status);
    return true;
}

tr_status cli_predictions_end(struct cli_predictions *predictions)
{
    char done[TR_COUNTED_SIZE], speed[TR_TEXT_NUMBER_SIZE];
    tr_status status = predictions->format->end ? predictions->format->end(predictions) : TR_OK;
    if (status == TR_OK) status = hand_over(predictions);
    if (status == TR_OK && predictions->path) status = tr_file_replace_finish(&predictions->file);
    if (status == TR_OK && predictions->path) {
        cli_screen_end(&predictions->screen);
        struct tr_text line = TR_TEXT_INIT;
        char *all;
        tr_text_addf(&line, "output      %s (%s, %s examples/s)\n", predictions->path,
                     tr_counted_long(predictions->examples, "example", done),
                     tr_text_from_count((int64_t)(speed_of(predictions) + 0.5), speed));
        status = tr_text_finish(&line, &all);
        if (status == TR_OK) cli_print(all);
    }
    cli_predictions_abandon(predictions);
    return status;
}

void cli_predictions_abandon(struct cli_predictions *predictions)
{
    if (predictions->open) {
        tr_file_replace_abandon(&predictions->file);
        cli_screen_end(&predictions->screen);
    }
    predictions->open = false;
    cli_masks_release(predictions);
    tr_text_release(&predictions->text);
}
