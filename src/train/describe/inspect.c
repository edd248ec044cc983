/* Networks as tables for people and as JSON for programs. */
#include "trireme/inspect.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "job/file/input.h"
#include "train/describe/summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---- */

/* "27.8 M"; multiply-adds count as two. Returns `buffer`. */
static const char *operations_text(int64_t operations, char buffer[TR_TEXT_NUMBER_SIZE])
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    double value = (double)operations;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%.*f%s",
             unit == 0 || value >= 99.95 ? 0
             : value >= 9.995            ? 1
                                         : 2,
             value, units[unit]);
    return buffer;
}

static void add_fact(struct tr_text *text, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_fact(struct tr_text *text, const char *label, const char *format, ...)
{
    char value[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    tr_text_addf(text, "%-12s%s\n", label, value);
}

static const char *optimizer_name(const struct tr_job *job)
{
    return tr_rules.entries[job->optimizer.rule]->name;
}

static const char *loss_name(const struct tr_job *job)
{
    return tr_loss_class_of(&job->model->loss)->name;
}

static void add_sources(const struct tr_job *job, struct tr_text *text)
{
    struct tr_source_parts parts;
    tr_job_input_parts(job, &parts);
    const bool beside = parts.text[0];
    char number[TR_TEXT_NUMBER_SIZE];
    if (beside)
        add_fact(text, "input", "%s tokens of %s kinds", parts.text,
                 tr_text_from_count(job->model->vocabulary, number));
    if (parts.second[0])
        add_fact(text, "", "%s tokens of %s kinds", parts.second,
                 tr_text_from_count(parts.second_vocabulary, number));
    for (int32_t i = 0; i < parts.count; i++) {
        char shape[TR_SHAPE_TEXT];
        add_fact(text, i || beside ? "" : "input", "%s %s", parts.part[i].name,
                 tr_shape_text(&parts.part[i].shape, shape));
    }
}

static void add_head(const struct tr_summary *summary, const char *path, struct tr_text *text)
{
    const struct tr_job *job = summary->job;
    char shape[TR_SHAPE_TEXT], number[TR_TEXT_NUMBER_SIZE];
    add_fact(text, "job", "%s", job->file.name);
    if (summary->checkpoint) {
        const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(summary->checkpoint);
        const char *skipped = tr_checkpoint_skipped(summary->checkpoint);
        add_fact(text, "checkpoint", "%s", tr_checkpoint_path(summary->checkpoint));
        while (skipped && *skipped) { /* a line each */
            size_t length = strcspn(skipped, "\n");
            add_fact(text, "skipped", "%.*s", (int)length, skipped);
            skipped += length + (skipped[length] == '\n');
        }
        add_fact(text, "steps done", "%s", tr_text_from_count(facts->step, number));
        add_fact(text, "hash", "%s", facts->parameter_hash);
        add_fact(text, "written by", "%s", facts->program);
    } else {
        add_fact(text, "file", "%s", path);
    }
    if (job->parts.count > 0 || job->parts.second[0])
        add_sources(job, text);
    else if (job->features == TR_FEATURE_TOKENS)
        add_fact(text, "input", "tokens of %s kinds", tr_text_from_count(job->model->vocabulary, number));
    else
        add_fact(text, "input", "%s", tr_shape_text(&job->model->input, shape));
    add_fact(text, "loss", "%s", loss_name(job));
    add_fact(text, "optimizer", "%s, rate %s", optimizer_name(job),
             tr_text_from_double(job->optimizer.rate, number));
    add_fact(text, "settings", "%s", job->digest);
}

static const char *input_name(const struct tr_model *model, const struct tr_layer *layer, int k)
{
    if (layer->input[k] >= 0) return model->layers[layer->input[k]].name;
    return model->text_part[0] ? model->text_part : TR_LAYER_NETWORK_INPUT;
}

/* Special facts of a layer: work for each token, inputs other than the layer before, its algorithm.
   Returned, free with tr_free(); NULL when memory fails. */
static char *remark_on(const struct tr_model *model, int i, bool per_token, bool again)
{
    const struct tr_layer *layer = &model->layers[i];
    struct tr_text text = TR_TEXT_INIT;
    char *remark;
    const char *between = "";
    if (per_token) tr_text_add(&text, "a token"), between = ", ";
    if (layer->input_count > 1 || layer->input[0] != i - 1)
        for (int k = 0; k < layer->input_count; k++, between = ", ")
            tr_text_addf(&text, "%s%s%s", between, k ? "" : "from ", input_name(model, layer, k));
    if (layer->algorithm) {
        tr_text_addf(&text, "%s%s: %s", between, layer->algorithm, layer->reason);
        between = ", ";
    }
    if (layer->pace.frozen || tr_layer_is_base(layer)) {
        tr_text_addf(&text, "%s%s", between, tr_layer_is_base(layer) ? "base" : "frozen");
        between = ", ";
    }
    if (layer->adapters.count > 0)
        tr_text_addf(&text, " with adapters of rank %lld", (long long)layer->adapters.rank);
    if (again) tr_text_addf(&text, "%scomputed again", between);
    return tr_text_finish(&text, &remark) == TR_OK ? remark : NULL;
}

static void add_layers(const struct tr_summary *summary, struct tr_text *text)
{
    const struct tr_model *model = summary->job->model;
    char shape[TR_SHAPE_TEXT], a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE];
    struct tr_table table;
    tr_table_begin(&table, "lllrrrl");
    static const char *const titles[] = {"layer", "kind", "output", "parameters", "memory", "operations", ""};
    for (int i = 0; i < 7; i++) tr_table_cell(&table, "%s", titles[i]);
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer_summary *layer = &summary->layer[i];
        tr_table_cell(&table, "%s", model->layers[i].name);
        tr_table_cell(&table, "%s", model->layers[i].class->name);
        tr_table_cell(&table, "%s", tr_shape_text(&model->layers[i].out, shape));
        tr_table_cell(&table, "%s", layer->parameters ? tr_text_from_count(layer->parameters, a) : "-");
        tr_table_cell(&table, "%s", layer->bytes ? tr_text_from_bytes(layer->bytes, b) : "-");
        tr_table_cell(&table, "%s", layer->operations ? operations_text(layer->operations, c) : "-");
        char *remark = remark_on(model, i, layer->per_token, layer->again);
        if (!remark) text->failed = true;
        tr_table_cell(&table, "%s", remark ? remark : "");
        tr_free(remark);
    }
    tr_text_add(text, "\n");
    tr_table_finish(&table, text);
    tr_text_add(text, "\n");
}

/* The floats that training changes and that count as parameters. */
static int64_t count_trained(const struct tr_model *model)
{
    int64_t trained = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (!model->layers[i].pace.frozen) trained += tr_model_learned(model, i);
    return trained;
}

static void add_parameters(const struct tr_summary *summary, struct tr_text *text)
{
    const struct tr_model *model = summary->job->model;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE], d[TR_TEXT_NUMBER_SIZE];
    int64_t trained = count_trained(model), all = model->parameter_total + summary->base_parameters;
    const char *count = tr_text_from_count(all, a),
               *bytes = tr_text_from_bytes(summary->parameter_bytes + summary->base_bytes, b);
    if (trained == all)
        add_fact(text, "parameters", "%s in %s", count, bytes);
    else
        add_fact(text, "parameters", "%s in %s: %s are trained, %s frozen", count, bytes,
                 tr_text_from_count(trained, c), tr_text_from_count(all - trained, d));
}

static void add_totals(const struct tr_summary *summary, struct tr_text *text)
{
    const struct tr_job *job = summary->job;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE], d[TR_TEXT_NUMBER_SIZE];
    add_parameters(summary, text);
    if (summary->tokens < 0) {
        add_fact(text, "a step", "unknown: the data, which say how long sequences get, could not be read");
        return;
    }
    add_fact(text, "an example", "%s operations, %s without training%s%s%s",
             operations_text(summary->operations, a), tr_text_from_bytes(summary->inference_bytes, b),
             summary->tokens ? ", with " : "", summary->tokens ? tr_text_from_count(summary->tokens, c) : "",
             summary->tokens ? " tokens" : "");
    if (summary->again_operations > 0)
        add_fact(text, "recompute", "%s operations of a step are computed again, to save memory",
                 operations_text(summary->again_operations, a));
    add_fact(text, "a step", "%s operations for %s examples in %s microbatch%s",
             operations_text(summary->step_operations, a), tr_text_from_count(job->train.batch, b),
             tr_text_from_count(job->train.microbatches, c), job->train.microbatches == 1 ? "" : "es");
    char base[2 * TR_TEXT_NUMBER_SIZE] = "";
    if (summary->base_bytes > 0)
        snprintf(base, sizeof base, "base %s, ",
                 tr_text_from_bytes(summary->base_bytes, (char[TR_TEXT_NUMBER_SIZE]){0}));
    char teacher[2 * TR_TEXT_NUMBER_SIZE] = "";
    if (summary->teacher_bytes > 0)
        snprintf(teacher, sizeof teacher, ", teacher %s",
                 tr_text_from_bytes(summary->teacher_bytes, (char[TR_TEXT_NUMBER_SIZE]){0}));
    add_fact(text, "memory", "%s: %sparameters %s, gradients %s, optimizer %s, layers %s%s",
             tr_text_from_bytes(summary->base_bytes + summary->parameter_bytes + summary->gradient_bytes +
                                    summary->state_bytes + summary->pass_bytes + summary->teacher_bytes,
                                (char[TR_TEXT_NUMBER_SIZE]){0}),
             base, tr_text_from_bytes(summary->parameter_bytes, a),
             tr_text_from_bytes(summary->gradient_bytes, b), tr_text_from_bytes(summary->state_bytes, c),
             tr_text_from_bytes(summary->pass_bytes, d), teacher);
}

/* The name of the inspected thing. */
static const char *name_of(const struct tr_inspect_settings *what)
{
    if (what->path) return what->path;
    return what->model_name ? what->model_name : "model";
}

static tr_status inspect_as_text(const struct tr_inspect_settings *what, char **out)
{
    struct tr_summary summary;
    struct tr_text text = TR_TEXT_INIT;
    tr_status status = tr_summary_make(what, &summary);
    if (status == TR_OK) {
        add_head(&summary, name_of(what), &text);
        add_layers(&summary, &text);
        add_totals(&summary, &text);
        status = tr_text_finish(&text, out);
    }
    tr_summary_release(&summary);
    return status;
}

/* ---- JSON ---- */

static void write_shape(struct tr_json_writer *json, const char *key, const struct tr_shape *shape)
{
    tr_json_open_array(json, key);
    for (int i = 0; i < shape->rank; i++) tr_json_integer(json, NULL, shape->size[i]);
    tr_json_close_array(json);
}

static void write_head(const struct tr_summary *summary, const char *path, struct tr_json_writer *json)
{
    const struct tr_job *job = summary->job;
    tr_json_text(json, "name", job->file.name);
    if (summary->checkpoint) {
        const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(summary->checkpoint);
        tr_json_text(json, "checkpoint", tr_checkpoint_path(summary->checkpoint));
        tr_json_integer(json, "step", facts->step);
        tr_json_text(json, "hash", facts->parameter_hash);
        tr_json_text(json, "program", facts->program);
    } else {
        tr_json_text(json, "file", path);
    }
    if (job->features == TR_FEATURE_TOKENS)
        tr_json_integer(json, "vocabulary", job->model->vocabulary);
    else
        write_shape(json, "input", &job->model->input);
    tr_json_text(json, "loss", loss_name(job));
    tr_json_text(json, "optimizer", optimizer_name(job));
    tr_json_double(json, "rate", job->optimizer.rate);
    tr_json_text(json, "settings", job->digest);
    tr_json_integer(json, "batch", job->train.batch);
    tr_json_integer(json, "microbatches", job->train.microbatches);
    tr_json_integer(json, "steps", job->train.steps);
}

static void write_layer(const struct tr_model *model, const struct tr_layer *layer,
                        const struct tr_layer_summary *summary, struct tr_json_writer *json)
{
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", layer->name);
    tr_json_text(json, "kind", layer->class->name);
    tr_json_open_array(json, "from");
    for (int k = 0; k < layer->input_count; k++) tr_json_text(json, NULL, input_name(model, layer, k));
    tr_json_close_array(json);
    write_shape(json, "output", &layer->out);
    tr_json_bool(json, "sequence", layer->out.sequence);
    tr_json_bool(json, "per_token", summary->per_token);
    tr_json_bool(json, "frozen", layer->pace.frozen || tr_layer_is_base(layer));
    tr_json_bool(json, "recomputed", summary->again);
    tr_json_integer(json, "memory", summary->bytes);
    tr_json_integer(json, "operations", summary->operations);
    if (layer->algorithm) {
        tr_json_text(json, "algorithm", layer->algorithm);
        tr_json_text(json, "reason", layer->reason);
    }
    tr_json_open_object(json, "parameters");
    for (int i = 0; i < layer->slot_count; i++) {
        const struct tr_parameter *parameter = tr_model_slot(model, layer->slot[i]);
        write_shape(json, parameter->name, &parameter->shape);
    }
    tr_json_close_object(json);
    tr_json_close_object(json);
}

static void write_totals(const struct tr_summary *summary, struct tr_json_writer *json)
{
    tr_json_integer(json, "parameters", summary->job->model->parameter_total + summary->base_parameters);
    tr_json_integer(json, "base_memory", summary->base_bytes);
    tr_json_integer(json, "trained_parameters", count_trained(summary->job->model));
    tr_json_integer(json, "parameter_memory", summary->parameter_bytes);
    tr_json_integer(json, "optimizer_memory", summary->state_bytes);
    if (summary->tokens < 0) return;
    tr_json_integer(json, "tokens", summary->tokens);
    tr_json_integer(json, "example_operations", summary->operations);
    tr_json_integer(json, "step_operations", summary->step_operations);
    tr_json_integer(json, "recomputed_operations", summary->again_operations);
    tr_json_integer(json, "example_memory", summary->inference_bytes);
    tr_json_integer(json, "gradient_memory", summary->gradient_bytes);
    tr_json_integer(json, "layer_memory", summary->pass_bytes);
    tr_json_integer(json, "teacher_memory", summary->teacher_bytes);
}

static tr_status inspect_as_json(const struct tr_inspect_settings *what, char **out)
{
    struct tr_summary summary;
    tr_status status = tr_summary_make(what, &summary);
    if (status == TR_OK) {
        const struct tr_model *model = summary.job->model;
        struct tr_json_writer json;
        tr_json_begin(&json, true);
        write_head(&summary, name_of(what), &json);
        tr_json_open_array(&json, "layers");
        for (int i = 0; i < model->layer_count; i++)
            write_layer(model, &model->layers[i], &summary.layer[i], &json);
        tr_json_close_array(&json);
        write_totals(&summary, &json);
        status = tr_json_finish(&json, out);
    }
    tr_summary_release(&summary);
    return status;
}

/* ---- either ---- */

tr_status tr_inspect(const char *path, const char *const *set, int set_count, char **text)
{
    return inspect_as_text(&(struct tr_inspect_settings){.path = path, .set = set, .set_count = set_count},
                           text);
}

tr_status tr_inspect_json(const char *path, const char *const *set, int set_count, char **text)
{
    return inspect_as_json(&(struct tr_inspect_settings){.path = path, .set = set, .set_count = set_count},
                           text);
}

tr_status tr_inspect_model(const struct tr_inspect_settings *settings, char **text)
{
    static const struct tr_inspect_settings defaults = TR_INSPECT_SETTINGS_INIT;
    struct tr_inspect_settings what;
    TR_TRY(tr_sized_take(settings, &defaults, sizeof defaults, "TR_INSPECT_SETTINGS_INIT", &what));
    const int given =
        (what.path != NULL) + (what.model_text != NULL) + tr_checkpoint_state_is_given(&what.state);
    if (given != 1)
        return tr_fail(TR_EINVAL, "%d of `path`, `model_text` and `state` are given; give one of them",
                       given);
    return what.json ? inspect_as_json(&what, text) : inspect_as_text(&what, text);
}
