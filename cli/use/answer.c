#include "cli/use/answer.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "cli/terminal/output.h"
#include "cli/use/predictor.h"
#include "cli/terminal/progress.h"

/* The classes, likeliest first; equal ones by number. Only the first `top` places are filled. */
static void rank_classes(const float *output, int32_t classes, int32_t top, int32_t *place)
{
    int32_t count = 0;
    for (int32_t i = 0; i < classes; i++) {
        int32_t at = count < top ? count++ : top;
        /* A NaN is never likelier than anything. */
        while (at > 0 && output[i] > output[place[at - 1]]) {
            if (at < top) place[at] = place[at - 1];
            at--;
        }
        if (at < top) place[at] = i;
    }
}

static void add_classes(struct tr_text *text, const struct cli_answer *answer, const float *output,
                        const int32_t *place, int32_t top, int32_t label)
{
    char name[16];
    for (int32_t i = 0; i < top; i++)
        tr_text_addf(text, "%s%s %.2f %%", i ? ", " : "", cli_class_name(answer->info, place[i], name),
                     100 * (double)output[place[i]]);
    if (label >= 0 && label < answer->info->outputs && place[0] != label)
        tr_text_addf(text, "  (in truth %s)", cli_class_name(answer->info, label, name));
}

static void add_values(struct tr_text *text, const struct cli_answer *answer, const float *output)
{
    char figure[CLI_FIGURE_SIZE];
    for (int32_t i = 0; i < answer->info->outputs; i++)
        tr_text_addf(text, "%s%s", i ? " " : "", cli_figure((double)output[i], figure));
}

static tr_status print_line(const struct cli_answer *answer, const char *input, const float *output,
                            const int32_t *place, int32_t top, int32_t label)
{
    struct tr_text text = TR_TEXT_INIT;
    char *line;
    tr_text_addf(&text, "%s: ", input);
    if (answer->info->classification)
        add_classes(&text, answer, output, place, top, label);
    else
        add_values(&text, answer, output);
    tr_text_add(&text, "\n");
    tr_status status = tr_text_finish(&text, &line);
    if (status == TR_OK) cli_print(line);
    tr_text_release(&text);
    return status;
}

static tr_status print_json(const struct cli_answer *answer, const char *input, const float *output,
                            const int32_t *place, int32_t label)
{
    struct tr_json_writer json;
    char *line, name[16];
    tr_json_begin(&json, false);
    tr_json_text(&json, "input", input);
    if (answer->info->classification) {
        tr_json_integer(&json, "class", place[0]);
        tr_json_text(&json, "name", cli_class_name(answer->info, place[0], name));
        tr_json_float(&json, "probability", output[place[0]]);
        if (label >= 0) tr_json_integer(&json, "label", label);
    }
    tr_json_open_array(&json, "output");
    for (int32_t i = 0; i < answer->info->outputs; i++) tr_json_float(&json, NULL, output[i]);
    tr_json_close_array(&json);
    TR_TRY(tr_json_finish(&json, &line));
    cli_print(line);
    cli_printf("\n");
    return TR_OK;
}

tr_status cli_answer_print(const struct cli_answer *answer, const char *input, const float *output,
                           int32_t label)
{
    int32_t top = answer->top < answer->info->outputs ? answer->top : answer->info->outputs;
    int32_t *place = tr_alloc((size_t)top, sizeof *place);
    tr_status status;
    if (!place) return TR_ENOMEM;
    if (answer->info->classification) rank_classes(output, answer->info->outputs, top, place);
    status = answer->json ? print_json(answer, input, output, place, label)
                          : print_line(answer, input, output, place, top, label);
    tr_free(place);
    return status;
}
