/* Columns as those of CoNLL: a word, its true tag where there is one, and its tag, a line for each word; an
 * empty line after each text. A word without a tag has "-".
 */
#include "cli/use/predictions.h"

#include "base/fail.h"

static tr_status check(const struct cli_predictions *predictions)
{
    if (predictions->info->of_tokens && !predictions->info->two_texts) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "--output: .conll holds a tag for each word, and the network of \"%s\" answers for %s; "
                   "take .csv, .npy or .jsonl",
                   predictions->info->checkpoint,
                   cli_predictions_are_of_pixels(predictions) ? "pixels" : "whole examples");
}

/* Characters that would end the column or the line are escaped as in C. */
static void add_word(struct tr_text *text, const char *word)
{
    for (; *word; word++) {
        const char *written = *word == '\t' ? "\\t" : *word == '\n' ? "\\n" : *word == '\r' ? "\\r" : NULL;
        if (written)
            tr_text_add(text, written);
        else
            tr_text_add_bytes(text, word, 1);
    }
}

static tr_status add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    struct tr_text *text = &predictions->text;
    int32_t outputs = predictions->info->outputs;
    char name[16];
    for (int64_t row = 0; row < prediction->words; row++) {
        bool taken = row < prediction->rows;
        int32_t label = taken && prediction->labels ? prediction->labels[row] : TR_NO_LABEL;
        add_word(text, prediction->word[row]);
        if (predictions->labels) {
            tr_text_add(text, "\t");
            tr_text_add(text, label >= 0 ? cli_predictions_class(predictions, label, name) : "-");
        }
        int32_t best = taken ? cli_predictions_best(prediction->output + row * outputs, outputs) : 0;
        tr_text_add(text, "\t");
        tr_text_add(text, taken ? cli_predictions_class(predictions, best, name) : "-");
        tr_text_add(text, "\n");
    }
    tr_text_add(text, "\n");
    return TR_OK;
}

const struct cli_prediction_format cli_predictions_conll = {.ending = ".conll", .check = check, .add = add};
