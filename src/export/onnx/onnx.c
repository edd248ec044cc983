/* The ONNX export: a network as a graph that ONNX Runtime and others run. */
#include "export/formats.h"
#include "export/onnx/graph.h"
#include "export/origin.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what enters ---- */

static void add_tokens(struct tr_onnx_graph *graph)
{
    char description[160];
    struct tr_onnx_info tokens = {
        .name = "tokens",
        .description = description,
        .type = TR_ONNX_INT64,
        .rank = 2,
        .size = {{"batch", 0}, {"time", 0}},
    };
    struct tr_onnx_info lengths = {
        .name = "lengths",
        .description = "words of each text, at least 1; what lies after them is not looked at",
        .type = TR_ONNX_INT64,
        .rank = 1,
        .size = {{"batch", 0}},
    };
    snprintf(description, sizeof description, "numbers of words, 0 to %" PRId64 "; 0 is the unknown word",
             graph->trace->model->vocabulary - 1);
    tr_onnx_input(graph->onnx, &tokens);
    tr_onnx_input(graph->onnx, &lengths);
}

/* Joined data has one for each source, with its name. */
static void add_input(struct tr_onnx_graph *graph, int number)
{
    const struct tr_trace *trace = graph->trace;
    const struct tr_shape *shape = &trace->value[TR_VALUE_GIVEN + number].shape;
    struct tr_onnx_value *input = &graph->value[TR_VALUE_GIVEN + number];
    const char *name = tr_trace_given_name(trace, number);
    const bool taken = strcmp(name, "output") == 0 || strcmp(name, "logits") == 0 ||
                       strcmp(name, "probabilities") == 0; /* by the dimension that leaves */
    snprintf(input->name.text, sizeof input->name.text, "%s%s", name[0] ? name : "input",
             taken ? "_input" : "");
    input->form = shape->rank == 3 ? TR_ONNX_IMAGE : TR_ONNX_ROWS;
    input->width = tr_shape_count(shape);
    memcpy(input->size, shape->size, sizeof input->size);
    struct tr_onnx_info info = tr_onnx_describe(input, input->name.text);
    info.description = shape->rank == 3 ? "pixels, 0 to 255" : "numbers as in the data";
    tr_onnx_input(graph->onnx, &info);
}

/* ---- what leaves ---- */

/* The network's output as a separate value, which may be renamed. */
static struct tr_onnx_value take_output(struct tr_onnx_graph *graph, bool classification)
{
    const struct tr_trace *trace = graph->trace;
    struct tr_onnx_value output = graph->value[trace->output];
    tr_onnx_begin_part(graph, "output");
    const bool pixels = trace->model->loss.pixels > 0;
    if (trace->model->output.rank < 3 || (classification && !pixels))
        output = tr_onnx_as_rows(graph, &output);
    if (output.form == TR_ONNX_SEQUENCE) {
        static const int64_t batch_first[] = {1, 0, 2};
        output.name = tr_onnx_emit(graph, "Transpose", 1, output.name.text);
        tr_onnx_attribute_integers(graph->onnx, "perm", 3, batch_first);
    }
    /* A value that no node computes has the name of an input. The last vectors of an LSTM have their own
       name. */
    for (int i = 0; i < trace->given; i++)
        if (strcmp(output.name.text, graph->value[TR_VALUE_GIVEN + i].name.text) == 0)
            return (struct tr_onnx_value){.form = output.form,
                                          .width = output.width,
                                          .name = tr_onnx_emit(graph, "Identity", 1, output.name.text)};
    return output;
}

/* The output for people, from scores: each part separately, as in `predict`. */
static void add_probabilities(struct tr_onnx_graph *graph, const char *scores, struct tr_onnx_info *info)
{
    static const char *const operation[] = {
        [TR_ANSWER_VALUES] = "Identity",
        [TR_ANSWER_CLASSES] = "Softmax",
        [TR_ANSWER_YES] = "Sigmoid",
    };
    static const char *const to[] = {"probabilities"};
    const struct tr_model *model = graph->trace->model;
    struct tr_answer_part part[TR_LOSS_HEADS];
    struct tr_onnx_name made[TR_LOSS_HEADS];
    const char *from[TR_LOSS_HEADS] = {scores};
    const int64_t width = tr_loss_width(&model->loss, tr_shape_count(&model->output));
    const int32_t parts = tr_loss_parts(&model->loss, width, part);
    const int64_t axis = model->loss.pixels > 0 ? 1 : -1; /* for images channels come first */
    if (!tr_loss_has_probabilities(&model->loss)) return;
    for (int64_t i = 0, first = 0; parts > 1 && i < parts; first += part[i++].outputs) {
        made[i] = tr_onnx_slice(graph, scores, -1, first, first + part[i].outputs);
        if (part[i].kind != TR_ANSWER_VALUES)
            made[i] = tr_onnx_emit(graph, operation[part[i].kind], 1, made[i].text);
        if (part[i].kind == TR_ANSWER_CLASSES) tr_onnx_attribute_integer(graph->onnx, "axis", -1);
        from[i] = made[i].text;
    }
    tr_onnx_node(graph->onnx, parts > 1 ? "Concat" : operation[part[0].kind], "probabilities", parts, from, 1,
                 to);
    if (parts > 1 || part[0].kind == TR_ANSWER_CLASSES) tr_onnx_attribute_integer(graph->onnx, "axis", axis);
    info->name = "probabilities";
    info->description = parts > 1 ? "the probabilities and values of all losses, in their order"
                        : part[0].kind == TR_ANSWER_CLASSES ? "the softmax of the logits"
                                                            : "the probability of yes for each output";
    tr_onnx_output(graph->onnx, info);
}

static void add_outputs(struct tr_onnx_graph *graph)
{
    const bool classification = tr_loss_scores_classes(&graph->trace->model->loss);
    struct tr_onnx_value output = take_output(graph, classification);
    const char *name = classification ? "logits" : "output";
    struct tr_onnx_info info = tr_onnx_describe(&output, name);
    if (output.form == TR_ONNX_SEQUENCE) { /* outside, the batch comes first */
        const struct tr_onnx_size time = info.size[0];
        info.size[0] = info.size[1];
        info.size[1] = time;
    }
    info.description = graph->trace->model->loss.pixels > 0 ? "a score for each class of each pixel"
                       : classification                     ? "a score for each class"
                                                            : "values";
    tr_onnx_rename(graph->onnx, output.name.text, name);
    tr_onnx_output(graph->onnx, &info);
    add_probabilities(graph, name, &info);
}

/* ---- the graph ---- */

tr_status tr_onnx_make(const struct tr_trace *trace, const struct tr_onnx_settings *settings, tr_onnx **out)
{
    struct tr_onnx_graph graph = {.trace = trace};
    tr_status status = tr_onnx_create(settings->name, settings->origin, &graph.onnx);
    *out = NULL;
    if (status != TR_OK) return status;
    graph.value = tr_alloc_zero((size_t)trace->value_count, sizeof *graph.value);
    if (!graph.value) status = TR_ENOMEM;
    if (status == TR_OK) {
        if (trace->model->input.sequence)
            add_tokens(&graph);
        else
            for (int i = 0; i < trace->given; i++) add_input(&graph, i);
    }
    for (int i = 0; i < trace->count && status == TR_OK; i++)
        status = tr_onnx_translate(&graph, &trace->item[i]);
    if (status == TR_OK) add_outputs(&graph);
    tr_free(graph.value);
    if (status == TR_OK)
        *out = graph.onnx;
    else
        tr_onnx_destroy(&graph.onnx);
    return status;
}

/* ---- the file ---- */

/* The names of the classes as a JSON array, where they have names. */
static tr_status add_classes(const struct tr_job *job, tr_onnx *onnx)
{
    const struct tr_string_list *classes = &job->input.classes;
    struct tr_text text = TR_TEXT_INIT;
    char *list;
    if (!tr_job_is_classification(job) || classes->count != tr_job_width(job)) return TR_OK;
    for (int i = 0; i < classes->count; i++) {
        tr_text_add(&text, i ? "," : "[");
        tr_text_add_quoted(&text, classes->item[i]);
    }
    tr_text_add(&text, "]");
    TR_TRY(tr_text_finish(&text, &list));
    tr_onnx_add_metadata(onnx, "classes", list);
    tr_free(list);
    return TR_OK;
}

static tr_status add_facts(const struct tr_export *what, tr_onnx *onnx)
{
    char step[32];
    snprintf(step, sizeof step, "%" PRId64, what->facts->step);
    tr_onnx_add_metadata(onnx, "name", what->job->file.name);
    tr_onnx_add_metadata(onnx, "step", step);
    tr_onnx_add_metadata(onnx, "hash", what->facts->parameter_hash);
    tr_onnx_add_metadata(onnx, "parameters", what->averages ? "moving averages" : "as trained");
    return add_classes(what->job, onnx);
}

static tr_status write_file(const tr_onnx *onnx, const char *path)
{
    struct tr_file_replacement file;
    TR_TRY(tr_file_replace_begin(NULL, path, 0, &file));
    tr_status status = tr_onnx_write(onnx, &file.writer);
    if (status == TR_OK) return tr_file_replace_finish(&file);
    tr_file_replace_abandon(&file);
    return status;
}

tr_status tr_export_onnx(const struct tr_export *what, const char *path)
{
    const struct tr_job *job = what->job;
    struct tr_trace *trace = NULL;
    tr_onnx *onnx = NULL;
    char *origin = tr_export_origin(what);
    struct tr_onnx_settings settings = {what->name, origin};
    tr_status status = origin ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = tr_trace_create(job->model, what->parameters, what->intake, &trace);
    if (status == TR_OK) status = tr_onnx_make(trace, &settings, &onnx);
    if (status == TR_OK) status = add_facts(what, onnx);
    if (status == TR_OK) status = write_file(onnx, path);
    tr_onnx_destroy(&onnx);
    tr_trace_destroy(&trace);
    tr_free(origin);
    return status;
}
