/* Predictions and measurements for the examples of data sets. */
#include "train/evaluate/predictor.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/cache/store.h"
#include "base/text/text.h"
#include "data/state.h"
#include "data/tables/join.h"
#include "data/tables/scaling.h"
#include "train/evaluate/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

static tr_status check_range(const tr_source *source, int64_t first, int64_t count)
{
    int64_t all = tr_source_info(source)->count;
    if (first >= 0 && count >= 0 && first <= all && count <= all - first) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%" PRId64 " examples from number %" PRId64 " on are wanted; the source has %" PRId64
                   ", counted from 0",
                   count, first, all);
}

/* The number of examples in a range, -1: invalid. */
static int64_t count_of(struct tr_example_range range)
{
    return range.first >= 0 && range.end >= range.first ? range.end - range.first : -1;
}

/* ---- one part after the other ---- */

/* The receiver of the predictions. */
struct receiver {
    const tr_predictor *predictor;
    tr_prediction_listener listener;
    void *user;
    float *answers; /* [room] */
    int64_t room, examples;
};

static tr_status tell(void *user, const struct tr_evaluated_part *part)
{
    struct receiver *receiver = user;
    int64_t floats = part->rows * tr_predictor_outputs(receiver->predictor);
    if (floats > receiver->room) {
        tr_free(receiver->answers);
        receiver->room = floats;
        receiver->answers = tr_alloc((size_t)floats, sizeof *receiver->answers);
        if (!receiver->answers) return TR_ENOMEM;
    }
    memcpy(receiver->answers, part->output, (size_t)floats * sizeof *receiver->answers);
    tr_answer(receiver->predictor->job, part->rows, receiver->answers);
    receiver->examples += part->examples;
    const struct tr_prediction prediction = {
        .first = part->first,
        .count = part->examples,
        .rows = part->rows,
        .output = receiver->answers,
        .offset = part->offset,
        .tokens = part->tokens,
        .labels = part->labels,
        .targets = part->targets,
    };
    if (!receiver->listener(receiver->user, &prediction)) return TR_OK;
    return tr_fail(TR_EINTERRUPTED, "the predictions were ended after %" PRId64 " examples",
                   receiver->examples);
}

tr_status tr_predictor_run(tr_predictor *predictor, const tr_source *source,
                           const struct tr_example_range *ranges, int64_t range_count,
                           tr_prediction_listener listener, void *user)
{
    struct receiver receiver = {.predictor = predictor, .listener = listener, .user = user};
    tr_evaluator *evaluator;
    TR_TRY(tr_predictor_check(predictor));
    TR_TRY(tr_job_check_source(predictor->job, source, "given", false));
    for (int64_t i = 0; i < range_count; i++)
        TR_TRY(check_range(source, ranges[i].first, count_of(ranges[i])));
    TR_TRY(tr_evaluator_create(predictor->device, predictor->job, source, NULL, range_count > 1, &evaluator));
    tr_status status = TR_OK;
    for (int64_t i = 0; i < range_count && status == TR_OK; i++)
        status = tr_evaluator_run(evaluator, predictor->parameters, ranges[i].first, ranges[i].end, tell,
                                  &receiver, NULL, NULL);
    tr_evaluator_destroy(&evaluator);
    tr_free(receiver.answers);
    return status;
}

/* ---- all at once ---- */

/* Destination of outputs, and their counts. */
struct collector {
    const tr_predictor *predictor;
    int64_t first;
    float *output;      /* or NULL */
    int64_t *confusion; /* or NULL */
};

static tr_status collect(void *user, const struct tr_evaluated_part *part)
{
    struct collector *collector = user;
    int64_t width = tr_predictor_outputs(collector->predictor);
    if (collector->output) {
        float *to = collector->output + (part->first - collector->first) * width;
        memcpy(to, part->output, (size_t)(part->rows * width) * sizeof *to);
        tr_answer(collector->predictor->job, part->rows, to);
    }
    for (int64_t r = 0; collector->confusion && part->labels && r < part->rows; r++) {
        const float *output = part->output + r * width;
        int64_t best = 0;
        if (part->labels[r] < 0) continue;
        for (int64_t k = 1; k < width; k++)
            if (output[k] > output[best]) best = k;
        collector->confusion[part->labels[r] * width + best]++;
    }
    return TR_OK;
}

static tr_status run_source(tr_predictor *predictor, const tr_source *source, int64_t first, int64_t end,
                            struct collector *collector, struct tr_evaluated_row *rows, float *answers)
{
    tr_evaluator *evaluator;
    TR_TRY(tr_evaluator_create(predictor->device, predictor->job, source, NULL, false, &evaluator));
    tr_status status =
        tr_evaluator_run(evaluator, predictor->parameters, first, end, collect, collector, rows, answers);
    tr_evaluator_destroy(&evaluator);
    return status;
}

tr_status tr_predictor_source(tr_predictor *predictor, const tr_source *source, int64_t first, int64_t count,
                              float *output)
{
    TR_TRY(tr_predictor_check_rows(predictor));
    TR_TRY(check_range(source, first, count));
    struct collector collector = {predictor, first, output, NULL};
    TR_TRY(tr_job_check_source(predictor->job, source, "given", false));
    return run_source(predictor, source, first, first + count, &collector, NULL, NULL);
}

static tr_status measure(tr_predictor *predictor, const tr_source *source, struct collector *collector,
                         struct tr_evaluation *result)
{
    int64_t count = tr_source_info(source)->count, width = tr_metrics_width(predictor->job, count);
    struct tr_evaluated_row *rows = tr_alloc((size_t)count + 1, sizeof *rows);
    float *answers = width > 0 ? tr_alloc((size_t)(count * width), sizeof *answers) : NULL;
    tr_status status = rows && (answers || width == 0) ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = run_source(predictor, source, 0, count, collector, rows, answers);
    if (status == TR_OK) {
        *result = tr_evaluation_of(rows, count);
        status = tr_metrics_make(predictor->job, count, rows, answers, result->loss, &predictor->metrics);
    }
    tr_free(answers);
    tr_free(rows);
    return status;
}

tr_status tr_predictor_evaluate(tr_predictor *predictor, const tr_source *source, double *loss,
                                double *accuracy, int64_t *confusion)
{
    struct tr_evaluation result = {0};
    struct collector collector = {predictor, 0, NULL,
                                  tr_job_is_classification(predictor->job) ? confusion : NULL};
    TR_TRY(tr_predictor_check_process(predictor));
    if (confusion)
        memset(confusion, 0,
               (size_t)(tr_predictor_outputs(predictor) * tr_predictor_outputs(predictor)) *
                   sizeof *confusion);
    tr_metrics_destroy(&predictor->metrics);
    TR_TRY(tr_job_check_source(predictor->job, source, "given", true));
    TR_TRY(measure(predictor, source, &collector, &result));
    *loss = result.loss;
    *accuracy = result.accuracy;
    return TR_OK;
}

const struct tr_metrics *tr_predictor_metrics(const tr_predictor *predictor)
{
    return predictor->metrics;
}

tr_status tr_predictor_open_data(tr_predictor *predictor, const char *set, tr_source **out)
{
    enum tr_data_set which = TR_SET_TEST;
    TR_TRY(tr_data_set_find(set, &which));
    return tr_job_open_source(predictor->job, which, NULL, out);
}

bool tr_predictor_has_data(const tr_predictor *predictor, const char *set)
{
    for (int i = 0; i < TR_SETS; i++)
        if (strcmp(set, tr_data_set_names[i]) == 0)
            return tr_job_has_set(predictor->job, (enum tr_data_set)i);
    return false;
}

tr_status tr_predictor_open_source(tr_predictor *predictor, const char *description, const char *directory,
                                   tr_source **out)
{
    return tr_source_open_through(predictor->store, description, directory, predictor->job->state, out);
}

/* Whether the replacement of missing numbers is the mean of the training data, which their scaling
   contains. */
static tr_status knows_means(const char *state, bool *means)
{
    struct tr_scaling scaling;
    int32_t classes;
    *means = false;
    if (!state || !tr_state_is(state, "scaling")) return TR_OK;
    TR_TRY(tr_scaling_read(state, &scaling, &classes));
    *means = scaling.fill != NULL;
    tr_scaling_release(&scaling);
    return TR_OK;
}

/* The replacement of a missing number, the same in all columns except those of names. */
static float constant_of(const struct tr_job_columns *columns)
{
    for (int32_t c = 0; c < columns->count; c++)
        if (!isnan(columns->fill[c])) return columns->fill[c];
    return 0;
}

tr_status tr_predictor_view(tr_predictor *predictor, const tr_source *source, tr_source **out)
{
    const struct tr_named_source given = {"given", source};
    char description[96] = "{memory: {name: given}}";
    bool means;
    TR_TRY(knows_means(predictor->job->state, &means));
    if (means)
        snprintf(description, sizeof description, "{memory: {name: given, missing: mean}}");
    else if (predictor->columns.fill)
        snprintf(description, sizeof description,
                 "{memory: {name: given, missing: constant, missing_value: %.9g}}",
                 (double)constant_of(&predictor->columns));
    tr_store_give(predictor->store, &given, 1);
    tr_status status = tr_predictor_open_source(predictor, description, NULL, out);
    tr_store_give(predictor->store, predictor->data, predictor->data_count);
    return status;
}

/* ---- several inputs ---- */

/* The source of that name as a part of a join. */
static tr_status describe_input(const tr_predictor *predictor, const char *name, struct tr_text *text)
{
    char *state = NULL;
    bool means = false;
    TR_TRY(tr_join_state_of(predictor->job->state, name, &state));
    tr_status status = knows_means(state, &means);
    tr_free(state);
    tr_text_addf(text, "%s: {memory: {name: ", name);
    tr_text_add_quoted(text, name);
    tr_text_add(text, means ? ", missing: mean}}" : "}}");
    return status;
}

static tr_status describe_inputs(const tr_predictor *predictor, const struct tr_named_source *inputs,
                                 int count, char **out)
{
    const struct tr_source_parts *parts = &predictor->job->parts;
    struct tr_text text = TR_TEXT_INIT;
    tr_status status = TR_OK;
    tr_text_add(&text, "{join: {sources: {");
    for (int32_t k = 0; k < parts->count && status == TR_OK; k++) {
        int i = 0;
        while (i < count && strcmp(inputs[i].name, parts->part[k].name) != 0) i++;
        if (k > 0) tr_text_add(&text, ", ");
        status = i < count ? describe_input(predictor, parts->part[k].name, &text)
                           : tr_fail(TR_ENOTFOUND, "the input \"%s\" is missing among the %d that are given",
                                     parts->part[k].name, count);
    }
    tr_text_add(&text, "}}}");
    if (status == TR_OK) return tr_text_finish(&text, out);
    tr_text_release(&text);
    return status;
}

tr_status tr_predictor_view_inputs(tr_predictor *predictor, const struct tr_named_source *inputs, int count,
                                   tr_source **out)
{
    const int32_t wanted = predictor->job->parts.count;
    char *description;
    *out = NULL;
    TR_TRY(tr_predictor_check_process(predictor));
    if (wanted == 0)
        return tr_fail(TR_EINVAL,
                       "the network of \"%s\" takes one input, which has no name; take tr_predictor_view()",
                       predictor->path);
    if (predictor->job->parts.text[0])
        return tr_fail(TR_EUNSUPPORTED,
                       "the network of \"%s\" takes a text with numbers beside it; give them as a data set, "
                       "described by `join`",
                       predictor->path);
    if (count > wanted)
        return tr_fail(TR_EINVAL, "%d inputs are given, the network of \"%s\" takes %d", count,
                       predictor->path, (int)wanted);
    TR_TRY(describe_inputs(predictor, inputs, count, &description));
    tr_store_give(predictor->store, inputs, count);
    tr_status status = tr_predictor_open_source(predictor, description, NULL, out);
    tr_store_give(predictor->store, predictor->data, predictor->data_count);
    tr_free(description);
    return status;
}
