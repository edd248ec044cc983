#include "export/onnx/graph.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

void tr_onnx_begin_part(struct tr_onnx_graph *graph, const char *part)
{
    if (graph->part && strcmp(part, graph->part) == 0) return;
    graph->part = part;
    graph->local_count = 0;
}

struct tr_onnx_name tr_onnx_local(struct tr_onnx_graph *graph, const char *what)
{
    struct tr_onnx_name name;
    int same = 1;
    for (int i = 0; i < graph->local_count; i++) same += strcmp(graph->local[i], what) == 0;
    assert(graph->local_count < TR_ONNX_LOCALS);
    graph->local[graph->local_count++] = what;
    snprintf(name.text, sizeof name.text, "%s/%s", graph->part, what);
    size_t length = strlen(name.text);
    if (same > 1) snprintf(name.text + length, sizeof name.text - length, "_%d", same);
    return name;
}

struct tr_onnx_name tr_onnx_emit(struct tr_onnx_graph *graph, const char *operation, int inputs, ...)
{
    const char *input[8], *output[1];
    struct tr_onnx_name name = tr_onnx_local(graph, operation);
    assert(inputs <= 8);
    va_list arguments;
    va_start(arguments, inputs);
    for (int i = 0; i < inputs; i++) input[i] = va_arg(arguments, const char *);
    va_end(arguments);
    output[0] = name.text;
    tr_onnx_node(graph->onnx, operation, name.text, inputs, input, 1, output);
    return name;
}

struct tr_onnx_name tr_onnx_local_integers(struct tr_onnx_graph *graph, const char *what, int64_t count,
                                           const int64_t *values)
{
    struct tr_onnx_name name = tr_onnx_local(graph, what);
    tr_onnx_integers(graph->onnx, name.text, count, values);
    return name;
}

struct tr_onnx_name tr_onnx_local_integer(struct tr_onnx_graph *graph, const char *what, int64_t value)
{
    struct tr_onnx_name name = tr_onnx_local(graph, what);
    tr_onnx_integer(graph->onnx, name.text, value);
    return name;
}

struct tr_onnx_name tr_onnx_local_number(struct tr_onnx_graph *graph, const char *what, float value)
{
    struct tr_onnx_name name = tr_onnx_local(graph, what);
    float *data = tr_onnx_floats(graph->onnx, name.text, 0, NULL);
    if (data) *data = value;
    return name;
}

/* ---- values ---- */

struct tr_onnx_name tr_onnx_slice(struct tr_onnx_graph *graph, const char *x, int64_t axis, int64_t begin,
                                  int64_t end)
{
    struct tr_onnx_name from = tr_onnx_local_integers(graph, "from", 1, &begin);
    struct tr_onnx_name to = tr_onnx_local_integers(graph, "to", 1, &end);
    struct tr_onnx_name along = tr_onnx_local_integers(graph, "axis", 1, &axis);
    return tr_onnx_emit(graph, "Slice", 4, x, from.text, to.text, along.text);
}

const struct tr_onnx_value *tr_onnx_value_of(const struct tr_onnx_graph *graph, const void *pointer)
{
    int value = tr_trace_value(graph->trace, pointer);
    assert(value >= 0);
    return &graph->value[value];
}

struct tr_onnx_info tr_onnx_describe(const struct tr_onnx_value *value, const char *name)
{
    struct tr_onnx_info info = {.name = name, .type = TR_ONNX_FLOAT};
    if (value->form == TR_ONNX_SEQUENCE) info.size[info.rank++].name = "time";
    info.size[info.rank++].name = "batch";
    if (value->form == TR_ONNX_IMAGE) {
        info.size[info.rank++].count = value->size[2];
        info.size[info.rank++].count = value->size[0];
        info.size[info.rank++].count = value->size[1];
    } else {
        info.size[info.rank++].count = value->width;
    }
    return info;
}

void tr_onnx_define(struct tr_onnx_graph *graph, const void *pointer, const struct tr_onnx_value *made)
{
    int value = tr_trace_value(graph->trace, pointer);
    assert(value >= 0);
    graph->value[value] = *made;
    struct tr_onnx_info info = tr_onnx_describe(made, made->name.text);
    if (made->name.text[0] && value != graph->trace->output) tr_onnx_between(graph->onnx, &info);
}

struct tr_onnx_value tr_onnx_as_rows(struct tr_onnx_graph *graph, const struct tr_onnx_value *value)
{
    static const int64_t channels_last[] = {0, 2, 3, 1};
    struct tr_onnx_value rows = {.form = TR_ONNX_ROWS, .name = value->name};
    if (value->form != TR_ONNX_IMAGE) return *value;
    rows.width = value->size[0] * value->size[1] * value->size[2];
    if (value->size[2] > 1 && value->size[0] * value->size[1] > 1) {
        rows.name = tr_onnx_emit(graph, "Transpose", 1, rows.name.text);
        tr_onnx_attribute_integers(graph->onnx, "perm", 4, channels_last);
    }
    rows.name = tr_onnx_emit(graph, "Flatten", 1, rows.name.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 1);
    return rows;
}

/* ---- parameters ---- */

/* Layers that share parameters have separate constants, each in the form that it needs. */
const char *tr_onnx_parameter_name(struct tr_onnx_graph *graph, const float *pointer)
{
    const struct tr_parameter *parameter = tr_trace_parameter(graph->trace, pointer);
    const struct tr_model *model = graph->trace->model;
    assert(parameter);
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        if (layer->sharer_of == 0 || strcmp(layer->name, graph->part) != 0) continue;
        const char *own = parameter->name + strlen(model->layers[layer->sharer_of - 1].name);
        snprintf(graph->shared.text, sizeof graph->shared.text, "%.63s%.90s", layer->name, own);
        return graph->shared.text;
    }
    return parameter->name;
}

static struct tr_onnx_name name_of(const char *text)
{
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", text);
    return name;
}

struct tr_onnx_name tr_onnx_parameter(struct tr_onnx_graph *graph, const float *pointer, int rank,
                                      const int64_t *size)
{
    struct tr_onnx_name name = name_of(tr_onnx_parameter_name(graph, pointer));
    float *data = tr_onnx_floats(graph->onnx, name.text, rank, size);
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= (size_t)size[i];
    if (data) memcpy(data, pointer, count * sizeof *data);
    return name;
}

struct tr_onnx_name tr_onnx_parameter_of_image(struct tr_onnx_graph *graph, const float *pointer,
                                               const int64_t image[3], int64_t item, int rank,
                                               const int64_t *size)
{
    struct tr_onnx_name name = name_of(tr_onnx_parameter_name(graph, pointer));
    float *data = tr_onnx_floats(graph->onnx, name.text, rank, size);
    for (int64_t c = 0; data && c < image[2]; c++) {
        for (int64_t pixel = 0; pixel < image[0] * image[1]; pixel++, data += item)
            memcpy(data, pointer + (pixel * image[2] + c) * item, (size_t)item * sizeof *data);
    }
    return name;
}
