/* A JSON object per line. */
#include "cli/use/predictions.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"

#include <math.h>
#include <string.h>

static void add_floats(struct tr_json_writer *json, const char *key, const float *values, int32_t count)
{
    tr_json_open_array(json, key);
    for (int32_t i = 0; i < count; i++) tr_json_float(json, NULL, values[i]);
    tr_json_close_array(json);
}

static void add_class(struct tr_json_writer *json, const struct cli_predictions *predictions,
                      const float *output, int32_t classes, bool named)
{
    char name[16];
    int32_t best = cli_predictions_best(output, classes);
    tr_json_integer(json, "class", best);
    if (named) tr_json_text(json, "name", cli_predictions_class(predictions, best, name));
    tr_json_float(json, "probability", output[best]);
}

/* Several losses: each separately. */
static void add_heads(struct tr_json_writer *json, const struct cli_predictions *predictions,
                      const float *output)
{
    tr_json_open_array(json, "heads");
    for (int32_t h = 0; h < predictions->info->heads; h++) {
        const struct tr_predict_head *head = &predictions->head[h];
        tr_json_open_object(json, NULL);
        tr_json_text(json, "loss", head->loss);
        if (head->classification) add_class(json, predictions, output, head->outputs, false);
        add_floats(json, "output", output, head->outputs);
        tr_json_close_object(json);
        output += head->outputs;
    }
    tr_json_close_array(json);
}

static void add_example(struct tr_json_writer *json, const struct cli_predictions *predictions,
                        const struct cli_prediction *prediction)
{
    const struct tr_predict_info *info = predictions->info;
    char name[16];
    if (info->classification) add_class(json, predictions, prediction->output, info->outputs, true);
    if (prediction->labels && prediction->labels[0] >= 0) {
        tr_json_integer(json, "label", prediction->labels[0]);
        tr_json_text(json, "label_name", cli_predictions_class(predictions, prediction->labels[0], name));
    }
    if (prediction->targets) add_floats(json, "label", prediction->targets, info->targets);
    add_floats(json, "output", prediction->output, info->outputs);
    if (info->heads > 1) add_heads(json, predictions, prediction->output);
}

/* The number of pixels of each class, and the fraction of right ones. */
static tr_status add_pixels(struct tr_json_writer *json, const struct cli_predictions *predictions,
                            const struct cli_prediction *prediction)
{
    const struct tr_predict_info *info = predictions->info;
    int64_t *count = tr_alloc((size_t)info->outputs, sizeof *count);
    double right;
    char name[16];
    if (!count) return TR_ENOMEM;
    cli_predictions_count(predictions, prediction, count, &right);
    tr_json_integer(json, "height", info->pixel_height);
    tr_json_integer(json, "width", info->pixel_width);
    tr_json_open_array(json, "classes");
    for (int32_t k = 0; k < info->outputs; k++)
        tr_json_text(json, NULL, cli_predictions_class(predictions, k, name));
    tr_json_close_array(json);
    tr_json_open_array(json, "pixels");
    for (int32_t k = 0; k < info->outputs; k++) tr_json_integer(json, NULL, count[k]);
    tr_json_close_array(json);
    if (!isnan(right)) tr_json_double(json, "accuracy", right);
    tr_free(count);
    return TR_OK;
}

/* A list of all words; the others have an item for each that is read. */
static void add_tokens(struct tr_json_writer *json, const struct cli_predictions *predictions,
                       const struct cli_prediction *prediction)
{
    int32_t outputs = predictions->info->outputs;
    char name[16];
    tr_json_open_array(json, "words");
    for (int64_t i = 0; i < prediction->words; i++) tr_json_text(json, NULL, prediction->word[i]);
    tr_json_close_array(json);
    tr_json_open_array(json, "tags");
    for (int64_t i = 0; i < prediction->rows; i++)
        tr_json_text(json, NULL,
                     cli_predictions_class(
                         predictions, cli_predictions_best(prediction->output + i * outputs, outputs), name));
    tr_json_close_array(json);
    tr_json_open_array(json, "probabilities");
    for (int64_t i = 0; i < prediction->rows; i++) {
        const float *output = prediction->output + i * outputs;
        tr_json_float(json, NULL, output[cli_predictions_best(output, outputs)]);
    }
    tr_json_close_array(json);
    if (!prediction->labels) return;
    tr_json_open_array(json, "labels");
    for (int64_t i = 0; i < prediction->rows; i++)
        tr_json_text(json, NULL,
                     prediction->labels[i] < 0
                         ? "-"
                         : cli_predictions_class(predictions, prediction->labels[i], name));
    tr_json_close_array(json);
}

static tr_status add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    struct tr_json_writer json;
    char *line;
    tr_json_begin(&json, false);
    tr_json_integer(&json, "example", prediction->example);
    tr_json_text(&json, "input", prediction->input);
    tr_status status = TR_OK;
    if (prediction->written) {
        tr_json_text(&json, "text", prediction->written);
        if (prediction->truth) tr_json_text(&json, "label", prediction->truth);
    } else if (cli_predictions_are_of_pixels(predictions))
        status = add_pixels(&json, predictions, prediction);
    else if (predictions->info->of_tokens)
        add_tokens(&json, predictions, prediction);
    else
        add_example(&json, predictions, prediction);
    tr_status finished = tr_json_finish(&json, &line);
    if (status == TR_OK) status = finished;
    if (status != TR_OK) {
        if (finished == TR_OK) tr_free(line);
        return status;
    }
    tr_text_add(&predictions->text, line);
    tr_text_add(&predictions->text, "\n");
    tr_free(line);
    return TR_OK;
}

const struct cli_prediction_format cli_predictions_jsonl = {.ending = ".jsonl", .add = add},
                                   cli_predictions_json = {.add = add};
