/* trireme eval: loss, accuracy, metrics and confusions of a trained network on a data set. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/use/predictor.h"
#include "cli/terminal/progress.h"

#include "base/alloc.h"
#include "base/text/counted.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "base/numbers/math.h"
#include "base/text/table.h"
#include "train/evaluate/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct options {
    struct cli_common common;
    char *checkpoint, *set_name, *data;
    bool confusion, average, best, json;
    struct cli_device device;
    struct cli_data_cache cache;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    CLI_OPTION_CHECKPOINT(struct options),
    CLI_OPTION_SET_NAME(struct options, "test"),
    CLI_OPTION_DATA(struct options),
    {.key = "confusion",
     .type = TR_OPTION_BOOL,
     .offset = AT(confusion),
     .fallback = "false",
     .help = "count the examples of each class (rows) by the predicted class (columns)",
     .letter = 'c'},
    CLI_OPTION_BEST(struct options),
    CLI_OPTION_AVERAGE(struct options),
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_DEVICE(struct options),
    CLI_OPTION_DATA_CACHE(struct options),
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* A wider table is of no use. */
#define CLASSES_MOST 100

struct result {
    struct tr_predict_info info;
    const char *set;
    int64_t examples;
    double loss, accuracy, seconds;
    int64_t *confusion; /* [outputs][outputs], or NULL */
    const struct tr_metrics *metrics;
};

static tr_status print_confusion(const struct result *result)
{
    int32_t classes = result->info.outputs;
    char columns[CLASSES_MOST + 2] = "l", name[16];
    struct tr_text text = TR_TEXT_INIT;
    struct tr_table cells;
    for (int32_t i = 0; i < classes; i++) columns[i + 1] = 'r';
    tr_table_begin(&cells, columns);
    tr_table_cell(&cells, "%s", "");
    for (int32_t i = 0; i < classes; i++) tr_table_cell(&cells, "%s", cli_class_name(&result->info, i, name));
    for (int32_t row = 0; row < classes; row++) {
        tr_table_cell(&cells, "%s", cli_class_name(&result->info, row, name));
        for (int32_t i = 0; i < classes; i++) {
            int64_t count = result->confusion[(int64_t)row * classes + i];
            if (count > 0)
                tr_table_cell(&cells, "%" PRId64, count);
            else
                tr_table_cell(&cells, ".");
        }
    }
    tr_table_finish(&cells, &text);
    char *all;
    TR_TRY(tr_text_finish(&text, &all));
    cli_printf("\n");
    cli_print_lines(all);
    return TR_OK;
}

/* A figure of an output; counts are whole numbers. */
static void add_figure(struct tr_table *cells, const char *column, double value)
{
    char figure[CLI_FIGURE_SIZE];
    if (isnan(value))
        tr_table_cell(cells, "-");
    else if (strcmp(column, "support") == 0)
        tr_table_cell(cells, "%.0f", value);
    else
        tr_table_cell(cells, "%s", cli_figure(value, figure));
}

/* A line for each output. */
static tr_status print_outputs(const struct result *result)
{
    const struct tr_metrics *metrics = result->metrics;
    char columns[16] = "l", name[16], *all;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_table cells;
    for (int c = 0; c < metrics->columns; c++) columns[c + 1] = 'r';
    tr_table_begin(&cells, columns);
    tr_table_cell(&cells, "%s", result->info.classification ? "class" : "output");
    for (int c = 0; c < metrics->columns; c++) tr_table_cell(&cells, "%s", metrics->column[c]);
    for (int32_t k = 0; k < metrics->outputs; k++) {
        tr_table_cell(&cells, "%s", cli_class_name(&result->info, k, name));
        for (int c = 0; c < metrics->columns; c++)
            add_figure(&cells, metrics->column[c], metrics->table[(int64_t)k * metrics->columns + c]);
    }
    tr_table_finish(&cells, &text);
    TR_TRY(tr_text_finish(&text, &all));
    cli_printf("\n");
    cli_print_lines(all);
    return TR_OK;
}

static tr_status print_metrics(const struct result *result)
{
    const struct tr_metrics *metrics = result->metrics;
    char figure[CLI_FIGURE_SIZE];
    const char *before = "            ";
    if (!metrics) return TR_OK;
    for (int i = 0; i < metrics->count; i++) {
        if (isnan(metrics->metric[i].value)) continue;
        cli_printf("%s%s %s", before, metrics->metric[i].name, cli_figure(metrics->metric[i].value, figure));
        before = ", ";
    }
    cli_printf("\n");
    const bool lists = metrics->columns > 0 && metrics->outputs > 1 && metrics->outputs <= CLASSES_MOST;
    return lists ? print_outputs(result) : TR_OK;
}

static tr_status print_text(const struct result *result)
{
    char a[TR_COUNTED_SIZE], b[TR_TEXT_NUMBER_SIZE], figure[CLI_FIGURE_SIZE];
    cli_printf("checkpoint  %s (step %s)\n", result->info.checkpoint,
               tr_text_from_count(result->info.step, a));
    cli_printf("%-12s", result->set);
    if (result->info.of_tokens) cli_printf("perplexity %.4g, ", tr_exp(result->loss));
    if (result->info.accuracy) cli_printf("accuracy %.4f, ", result->accuracy);
    double speed = result->seconds > 0 ? (double)result->examples / result->seconds : 0;
    cli_printf("loss %s (%s, %s examples/s)\n", cli_figure(result->loss, figure),
               tr_counted_long(result->examples, "example", a),
               tr_text_from_count((int64_t)(speed + 0.5), b));
    TR_TRY(print_metrics(result));
    return result->confusion ? print_confusion(result) : TR_OK;
}

static tr_status print_json(const struct result *result)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "checkpoint", result->info.checkpoint);
    tr_json_text(&json, "name", result->info.name);
    tr_json_integer(&json, "step", result->info.step);
    tr_json_text(&json, "hash", result->info.hash);
    tr_json_text(&json, "set", result->set);
    tr_json_integer(&json, "examples", result->examples);
    tr_json_double(&json, "loss", result->loss);
    if (result->info.accuracy) tr_json_double(&json, "accuracy", result->accuracy);
    if (result->info.of_tokens) tr_json_double(&json, "perplexity", tr_exp(result->loss));
    tr_metrics_add(&json, result->metrics);
    tr_json_double(&json, "seconds", result->seconds);
    if (result->confusion) {
        int64_t classes = result->info.outputs;
        tr_json_open_array(&json, "confusion");
        for (int64_t row = 0; row < classes; row++) {
            tr_json_open_array(&json, NULL);
            for (int64_t i = 0; i < classes; i++)
                tr_json_integer(&json, NULL, result->confusion[row * classes + i]);
            tr_json_close_array(&json);
        }
        tr_json_close_array(&json);
    }
    return cli_print_json(&json);
}

static tr_status make_confusion(const struct options *options, struct result *result)
{
    int64_t classes = result->info.outputs;
    if (!result->info.classification)
        return tr_fail(TR_EINVAL, "--confusion: the network has no classes, it computes values");
    if (classes > CLASSES_MOST && !options->json)
        return tr_fail(TR_EINVAL,
                       "--confusion: a table of %" PRId64 " classes is too wide (at most %d); add --json",
                       classes, CLASSES_MOST);
    result->confusion = tr_alloc_zero((size_t)(classes * classes), sizeof *result->confusion);
    return result->confusion ? TR_OK : TR_ENOMEM;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    tr_predictor *predictor = NULL;
    tr_source *source = NULL;
    struct result result = {.info = TR_PREDICT_INFO_INIT, .set = options->data ? "data" : options->set_name};
    tr_status status;
    TR_TRY_GOTO(cli_predictor_create(options->checkpoint, options->best, &options->device, &options->cache,
                                     options->average, &predictor),
                out);
    TR_TRY_GOTO(tr_predictor_info(predictor, &result.info), out);
    if (options->confusion) TR_TRY_GOTO(make_confusion(options, &result), out);
    TR_TRY_GOTO(cli_predictor_open(predictor, options->set_name, options->data, &source), out);
    result.examples = tr_source_info(source)->count;
    double start = tr_clock_seconds();
    TR_TRY_GOTO(tr_predictor_evaluate(predictor, source, &result.loss, &result.accuracy, result.confusion),
                out);
    result.seconds = tr_clock_seconds() - start;
    result.metrics = tr_predictor_metrics(predictor);
    status = (options->json ? print_json : print_text)(&result);
out:
    tr_free(result.confusion);
    tr_predictor_destroy(&predictor);
    tr_source_close(&source);
    return status;
}

const struct cli_command cli_eval = {
    .name = "eval",
    .summary = "measure a trained network on a data set",
    .about =
        "Computes loss, accuracy and other metrics of a checkpoint on a data set of its job, or on other "
        "data.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
