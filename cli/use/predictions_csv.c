/* A table with a line for each example, for each token of a tagged text, or for each pixel, as pandas and
 * spreadsheets read it.
 */
#include "cli/use/predictions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In double quotes if it has special characters. */
static void add_field(struct tr_text *text, const char *field)
{
    tr_text_add(text, ",");
    if (!field[strcspn(field, ",\"\r\n")]) {
        tr_text_add(text, field);
        return;
    }
    tr_text_add(text, "\"");
    for (const char *at = field; *at; at++) {
        if (*at == '"') tr_text_add(text, "\"");
        tr_text_add_bytes(text, at, 1);
    }
    tr_text_add(text, "\"");
}

static void add_number(struct tr_text *text, float value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, ",");
    tr_text_add(text, tr_text_from_float(value, number));
}

/* ---- the names of columns ---- */

static void add_named(struct tr_text *text, const char *prefix, const char *name)
{
    struct tr_text field = TR_TEXT_INIT;
    tr_text_add(&field, prefix);
    tr_text_add(&field, name);
    if (field.failed)
        text->failed = true;
    else
        add_field(text, field.bytes);
    tr_text_release(&field);
}

/* For the losses, if there are several: "class", "class_1". */
static void add_of_head(struct cli_predictions *predictions, const char *name, int32_t head)
{
    tr_text_addf(&predictions->text, ",%s", name);
    if (predictions->info->heads > 1) tr_text_addf(&predictions->text, "_%" PRId32, head + 1);
}

/* The name of value `k` of `count`: the name of its column, else its number. */
static const char *name_of(const struct cli_predictions *predictions, int32_t target, int32_t k,
                           int32_t count, char buffer[32])
{
    const char *const *names = predictions->info->target_names;
    if (names && target >= 0) return names[target];
    if (count == 1)
        snprintf(buffer, 32, "output");
    else
        snprintf(buffer, 32, "output_%" PRId32, k);
    return buffer;
}

static void add_labels(struct cli_predictions *predictions)
{
    char buffer[32];
    int32_t target = 0;
    if (predictions->labels) tr_text_add(&predictions->text, ",label");
    for (int32_t h = 0; predictions->values && h < predictions->info->heads; h++) {
        const struct tr_predict_head *head = &predictions->head[h];
        int32_t count = head->classification ? 1 : head->outputs;
        for (int32_t k = 0; k < count; k++, target++)
            if (predictions->info->target_names)
                add_named(&predictions->text, "label_", predictions->info->target_names[target]);
            else if (predictions->info->targets == 1)
                tr_text_add(&predictions->text, ",label");
            else
                add_named(&predictions->text, "label_",
                          (snprintf(buffer, sizeof buffer, "%" PRId32, target), buffer));
    }
}

static void add_outputs(struct cli_predictions *predictions)
{
    char buffer[32], class[16];
    int32_t target = 0, output = 0;
    for (int32_t h = 0; h < predictions->info->heads; h++) {
        const struct tr_predict_head *head = &predictions->head[h];
        for (int32_t k = 0; k < head->outputs; k++, output++) {
            if (!head->classification) {
                add_named(&predictions->text, "",
                          name_of(predictions, target + k, output, predictions->info->outputs, buffer));
            } else if (predictions->info->heads > 1) {
                snprintf(buffer, sizeof buffer, "%" PRId32 "_%" PRId32, h + 1, k);
                add_named(&predictions->text, "p_", buffer);
            } else {
                add_named(&predictions->text, "p_", cli_predictions_class(predictions, k, class));
            }
        }
        target += head->classification ? 1 : head->outputs;
    }
}

static tr_status begin(struct cli_predictions *predictions)
{
    struct tr_text *text = &predictions->text;
    tr_text_add(text, "example");
    if (predictions->info->two_texts) {
        tr_text_add(text, predictions->named ? ",input,text\n" : ",text,label\n");
        return TR_OK;
    }
    if (predictions->info->of_tokens)
        tr_text_add(text, ",token,word");
    else if (predictions->named)
        tr_text_add(text, ",input");
    if (cli_predictions_are_of_pixels(predictions)) tr_text_add(text, ",row,column");
    for (int32_t h = 0; h < predictions->info->heads; h++) {
        if (!predictions->head[h].classification) continue;
        add_of_head(predictions, "class", h);
        add_of_head(predictions, "probability", h);
    }
    add_labels(predictions);
    add_outputs(predictions);
    tr_text_add(text, "\n");
    return TR_OK;
}

/* ---- lines ---- */

static void add_classes(struct cli_predictions *predictions, const float *output)
{
    char name[16];
    for (int32_t h = 0; h < predictions->info->heads; h++) {
        const struct tr_predict_head *head = &predictions->head[h];
        if (head->classification) {
            int32_t best = cli_predictions_best(output, head->outputs);
            if (predictions->info->heads == 1)
                add_field(&predictions->text, cli_predictions_class(predictions, best, name));
            else
                tr_text_addf(&predictions->text, ",%" PRId32, best);
            add_number(&predictions->text, output[best]);
        }
        output += head->outputs;
    }
}

static tr_status add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    struct tr_text *text = &predictions->text;
    const struct tr_predict_info *info = predictions->info;
    char name[16];
    if (prediction->written) {
        tr_text_addf(text, "%" PRId64, prediction->example);
        if (predictions->named) add_field(text, prediction->input);
        add_field(text, prediction->written);
        if (prediction->truth) add_field(text, prediction->truth);
        tr_text_add(text, "\n");
        return TR_OK;
    }
    for (int64_t row = 0; row < prediction->rows; row++) {
        const float *output = prediction->output + row * info->outputs;
        tr_text_addf(text, "%" PRId64, prediction->example);
        if (info->of_tokens) {
            tr_text_addf(text, ",%" PRId64, row);
            add_field(text, prediction->word[row]);
        } else if (predictions->named) {
            add_field(text, prediction->input);
        }
        if (cli_predictions_are_of_pixels(predictions))
            tr_text_addf(text, ",%" PRId64 ",%" PRId64, row / info->pixel_width, row % info->pixel_width);
        add_classes(predictions, output);
        if (predictions->labels && prediction->labels && prediction->labels[row] >= 0)
            add_field(text, cli_predictions_class(predictions, prediction->labels[row], name));
        else if (predictions->labels)
            tr_text_add(text, ",");
        for (int32_t i = 0; predictions->values && i < info->targets; i++)
            add_number(text, prediction->targets[i]);
        for (int32_t k = 0; k < info->outputs; k++) add_number(text, output[k]);
        tr_text_add(text, "\n");
    }
    return TR_OK;
}

const struct cli_prediction_format cli_predictions_csv = {.ending = ".csv", .begin = begin, .add = add};
