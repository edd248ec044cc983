/* Lines for people. */
#include "cli/use/predictions.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The likeliest classes, equal ones by number. Only the first `top` places are filled, and none by a NaN. */
static void add_classes(struct cli_predictions *predictions, const float *output, int32_t classes)
{
    char name[16];
    for (int32_t i = 0, last = -1; i < predictions->top && i < classes; i++) {
        int32_t next = -1;
        for (int32_t k = 0; k < classes; k++) {
            bool left = last < 0 || output[k] < output[last] || (output[k] == output[last] && k > last);
            if (left && !isnan(output[k]) && (next < 0 || output[k] > output[next])) next = k;
        }
        if (next < 0 && i == 0) tr_text_add(&predictions->text, "nan");
        if (next < 0) break; /* the rest are NaN */
        tr_text_addf(&predictions->text, "%s%s %.2f %%", i ? ", " : "",
                     predictions->info->heads == 1 ? cli_predictions_class(predictions, next, name)
                                                   : (snprintf(name, sizeof name, "%" PRId32, next), name),
                     100 * (double)output[next]);
        last = next;
    }
}

static void add_values(struct cli_predictions *predictions, const float *output, int32_t count)
{
    char figure[CLI_FIGURE_SIZE];
    for (int32_t i = 0; i < count; i++)
        tr_text_addf(&predictions->text, "%s%s", i ? " " : "", cli_figure((double)output[i], figure));
}

static void add_label(struct cli_predictions *predictions, int32_t label, int32_t answer)
{
    char name[16];
    if (label >= 0 && label != answer)
        tr_text_addf(&predictions->text, "  (in truth %s)", cli_predictions_class(predictions, label, name));
}

/* Each word with its tag after a slash. */
static void add_tags(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    int32_t outputs = predictions->info->outputs;
    char name[16];
    for (int64_t i = 0; i < prediction->words; i++) {
        bool taken = i < prediction->rows;
        int32_t best = taken ? cli_predictions_best(prediction->output + i * outputs, outputs) : 0;
        tr_text_addf(&predictions->text, "%s%s/%s", i ? " " : "", prediction->word[i],
                     taken ? cli_predictions_class(predictions, best, name) : "-");
        if (taken && prediction->labels && prediction->labels[i] >= 0 && prediction->labels[i] != best)
            tr_text_addf(&predictions->text, " (in truth %s)",
                         cli_predictions_class(predictions, prediction->labels[i], name));
    }
}

static void add_heads(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    const float *output = prediction->output;
    for (int32_t h = 0; h < predictions->info->heads; h++) {
        const struct tr_predict_head *head = &predictions->head[h];
        if (h > 0) tr_text_add(&predictions->text, "; ");
        if (head->classification)
            add_classes(predictions, output, head->outputs);
        else
            add_values(predictions, output, head->outputs);
        output += head->outputs;
    }
    if (prediction->labels)
        add_label(predictions, prediction->labels[0],
                  cli_predictions_best(prediction->output, predictions->info->outputs));
    if (!prediction->targets) return;
    tr_text_add(&predictions->text, "  (in truth ");
    add_values(predictions, prediction->targets, predictions->info->targets);
    tr_text_add(&predictions->text, ")");
}

/* The fraction of pixels of the most frequent classes. */
static tr_status add_pixels(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    const int32_t classes = predictions->info->outputs;
    int64_t *count = tr_alloc((size_t)classes, sizeof *count);
    float *share = tr_alloc((size_t)classes, sizeof *share);
    double right = NAN;
    tr_status status = count && share ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        cli_predictions_count(predictions, prediction, count, &right);
        for (int32_t k = 0; k < classes; k++) share[k] = (float)count[k] / (float)prediction->rows;
        add_classes(predictions, share, classes);
        tr_text_addf(&predictions->text, " of %" PRId32 " x %" PRId32 " pixels",
                     predictions->info->pixel_width, predictions->info->pixel_height);
        if (!isnan(right)) tr_text_addf(&predictions->text, "  (%.2f %% right)", 100 * right);
    }
    tr_free(share);
    tr_free(count);
    return status;
}

static void add_written(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    tr_text_add(&predictions->text, prediction->written);
    if (prediction->truth && strcmp(prediction->truth, prediction->written) != 0)
        tr_text_addf(&predictions->text, "  (in truth %s)", prediction->truth);
}

static tr_status add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    if (!predictions->info->of_tokens || !predictions->named)
        tr_text_addf(&predictions->text, "%s: ", prediction->input);
    if (prediction->written)
        add_written(predictions, prediction);
    else if (cli_predictions_are_of_pixels(predictions))
        TR_TRY(add_pixels(predictions, prediction));
    else if (predictions->info->of_tokens)
        add_tags(predictions, prediction);
    else
        add_heads(predictions, prediction);
    tr_text_add(&predictions->text, "\n");
    return TR_OK;
}

const struct cli_prediction_format cli_predictions_text = {.add = add};
