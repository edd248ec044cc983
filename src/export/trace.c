#include "export/trace.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/device.h"

#include <assert.h>
#include <string.h>

#define NAME(op) #op,
const char *const tr_traced_names[TR_TRACED_KINDS] = {TR_DEVICE_OPS(NAME)};
#undef NAME

/* A device that writes operations down. */
struct recorder {
    struct tr_device head;
    struct tr_trace *trace;
    int layer;
    bool per_token;
};

static tr_status record(tr_device *device, enum tr_traced_kind kind, const void *arguments, size_t size)
{
    struct recorder *recorder = (struct recorder *)device;
    struct tr_trace *trace = recorder->trace;
    if (!tr_grow(&trace->item, trace->count, sizeof *trace->item)) return TR_ENOMEM;
    struct tr_traced *traced = &trace->item[trace->count++];
    *traced = (struct tr_traced){.kind = kind, .layer = recorder->layer, .per_token = recorder->per_token};
    memcpy(&traced->as, arguments, size);
    return TR_OK;
}

#define RECORD(op)                                                                                           \
    static tr_status record_##op(tr_device *device, const struct tr_op_##op *arguments)                      \
    {                                                                                                        \
        return record(device, TR_TRACED_##op, arguments, sizeof *arguments);                                 \
    }
TR_DEVICE_OPS(RECORD)
#undef RECORD

/* Layers allocate, copy and wait for nothing, so those slots stay empty. */
static const struct tr_device_class recorder_class = {.name = "trace",
                                                      .version = TR_DEVICE_VERSION,
#define SLOT(op) .op = record_##op,
                                                      TR_DEVICE_OPS(SLOT)
#undef SLOT
};

/* ---- values ---- */

static int buffer_value(const struct tr_model *model, int layer, int buffer)
{
    return TR_VALUE_LAYERS + model->layer_count + layer * TR_LAYER_BUFFERS + buffer;
}

static int output_value(const struct tr_trace *trace, int layer)
{
    int source = tr_model_source(trace->model, layer);
    return source < 0 ? TR_VALUE_INPUT : TR_VALUE_LAYERS + source;
}

static int first_name(const struct tr_trace *trace, int value)
{
    while (trace->value[value].same != value) value = trace->value[value].same;
    return value;
}

int tr_trace_value(const struct tr_trace *trace, const void *pointer)
{
    uintptr_t first = (uintptr_t)trace->place, at = (uintptr_t)pointer;
    if (at < first || at >= first + (size_t)trace->value_count * sizeof *trace->place) return -1;
    return first_name(trace, (int)((at - first) / sizeof *trace->place));
}

const struct tr_parameter *tr_trace_parameter(const struct tr_trace *trace, const float *pointer)
{
    const struct tr_model *model = trace->model;
    for (int i = 0; i < model->parameter_count; i++)
        if (pointer == trace->parameters + model->parameters[i].offset) return &model->parameters[i];
    return NULL;
}

/* Where an operation's arguments hold the pointers of what it reads and writes, in bytes; 0: no more, since
 * a count comes first everywhere. */
struct port_offsets {
    size_t read[2], write[2];
};

#define AT(op, member) offsetof(struct tr_op_##op, member)
static const struct port_offsets port_offsets[TR_TRACED_KINDS] = {
    [TR_TRACED_dense_forward] = {{AT(dense_forward, x)}, {AT(dense_forward, y)}},
    [TR_TRACED_conv_forward] = {{AT(conv_forward, x)}, {AT(conv_forward, y)}},
    [TR_TRACED_activation_forward] = {{AT(activation_forward, x)}, {AT(activation_forward, y)}},
    [TR_TRACED_add] = {{AT(add, a), AT(add, b)}, {AT(add, y)}},
    [TR_TRACED_scale] = {{AT(scale, x)}, {AT(scale, y)}},
    [TR_TRACED_pool_forward] = {{AT(pool_forward, x)}, {AT(pool_forward, y)}},
    [TR_TRACED_softmax_forward] = {{AT(softmax_forward, x)}, {AT(softmax_forward, y)}},
    [TR_TRACED_layer_norm_forward] = {{AT(layer_norm_forward, x)}, {AT(layer_norm_forward, y)}},
    [TR_TRACED_batch_norm_infer] = {{AT(batch_norm_infer, x)}, {AT(batch_norm_infer, y)}},
    [TR_TRACED_embedding_forward] = {{AT(embedding_forward, token)}, {AT(embedding_forward, y)}},
    [TR_TRACED_lstm_forward] = {{AT(lstm_forward, gates)}, {AT(lstm_forward, h), AT(lstm_forward, c)}},
    [TR_TRACED_sequence_last_forward] = {{AT(sequence_last_forward, x)}, {AT(sequence_last_forward, y)}},
    [TR_TRACED_load_images] = {{AT(load_images, source)}, {AT(load_images, y)}},
};
#undef AT

static int port_value(const struct tr_trace *trace, const struct tr_traced *traced, size_t offset)
{
    const void *pointer;
    if (offset == 0) return -1;
    memcpy(&pointer, (const char *)&traced->as + offset, sizeof pointer);
    return tr_trace_value(trace, pointer);
}

struct tr_traced_ports tr_trace_ports(const struct tr_trace *trace, const struct tr_traced *traced)
{
    const struct port_offsets *offsets = &port_offsets[traced->kind];
    struct tr_traced_ports ports;
    for (int i = 0; i < 2; i++) {
        ports.read[i] = port_value(trace, traced, offsets->read[i]);
        ports.write[i] = port_value(trace, traced, offsets->write[i]);
    }
    return ports;
}

int tr_trace_writer(const struct tr_trace *trace, int value)
{
    for (int i = 0; i < trace->count; i++) {
        struct tr_traced_ports ports = tr_trace_ports(trace, &trace->item[i]);
        if (ports.write[0] == value || ports.write[1] == value) return i;
    }
    return -1;
}

const char *tr_trace_value_name(const struct tr_trace *trace, int value)
{
    int layer = trace->value[value].layer;
    return layer < 0 ? "input" : trace->model->layers[layer].name;
}

tr_status tr_trace_refuse(const struct tr_trace *trace, const struct tr_traced *traced, const char *format)
{
    const struct tr_layer *layer = traced->layer < 0 ? NULL : &trace->model->layers[traced->layer];
    return tr_fail(TR_EUNSUPPORTED,
                   "layer \"%s\" (%s) needs the operation \"%s\", which %s cannot say yet; "
                   "export to another format",
                   layer ? layer->name : "input", layer ? layer->class->name : "input",
                   tr_traced_names[traced->kind], format);
}

/* ---- making ---- */

static tr_status make_values(struct tr_trace *trace, const struct tr_op_load_images *images)
{
    const struct tr_model *model = trace->model;
    trace->value_count = buffer_value(model, model->layer_count, 0);
    trace->value = tr_alloc_zero((size_t)trace->value_count, sizeof *trace->value);
    trace->place = tr_alloc_zero((size_t)trace->value_count, sizeof *trace->place);
    if (!trace->value || !trace->place) return TR_ENOMEM;
    for (int i = 0; i < trace->value_count; i++)
        trace->value[i] = (struct tr_traced_value){.layer = -1, .same = i};
    trace->value[TR_VALUE_INPUT].shape = trace->value[TR_VALUE_GIVEN].shape = model->input;
    if (images)
        trace->value[TR_VALUE_GIVEN].shape =
            (struct tr_shape){3, {images->in_h, images->in_w, images->channels}, false};
    else
        trace->value[TR_VALUE_INPUT].same = TR_VALUE_GIVEN;
    for (int i = 0; i < model->layer_count; i++) {
        trace->value[TR_VALUE_LAYERS + i].shape = model->layers[i].out;
        trace->value[TR_VALUE_LAYERS + i].layer = i;
        for (int k = 0; k < TR_LAYER_BUFFERS; k++) trace->value[buffer_value(model, i, k)].layer = i;
    }
    return TR_OK;
}

static tr_status trace_images(struct recorder *recorder, const struct tr_op_load_images *images)
{
    const struct tr_trace *trace = recorder->trace;
    struct tr_op_load_images op = *images;
    op.rows = 1;
    op.random = false;
    op.source = (const uint8_t *)&trace->place[TR_VALUE_GIVEN];
    op.y = &trace->place[TR_VALUE_INPUT];
    return tr_device_load_images(&recorder->head, &op);
}

static tr_status trace_layer(struct recorder *recorder, int i)
{
    struct tr_trace *trace = recorder->trace;
    const struct tr_model *model = trace->model;
    const struct tr_layer *layer = &model->layers[i];
    recorder->layer = i;
    recorder->per_token = layer->in[0].sequence;
    struct tr_layer_call call = {
        .device = &recorder->head,
        .layer = layer,
        .training = false,
        .examples = 1,
        .rows = 1,
        .global_rows = 1,
        .offset = (const int32_t *)&trace->place[TR_VALUE_GIVEN],
        .token = (const int32_t *)&trace->place[TR_VALUE_GIVEN],
        .layer_number = (uint32_t)i,
        .y = &trace->place[TR_VALUE_LAYERS + i],
    };
    for (int k = 0; k < layer->input_count; k++)
        call.x[k] = &trace->place[output_value(trace, layer->input[k])];
    for (int k = 0; k < layer->buffer_count; k++) call.buffer[k] = &trace->place[buffer_value(model, i, k)];
    for (int k = 0; k < layer->parameter_count; k++)
        call.parameter[k] = trace->parameters + model->parameters[layer->parameter[k]].offset;
    return layer->class->forward(&call);
}

/* A copy (dropout, outside of training) is another name of what it copies. */
static void drop_copies(struct tr_trace *trace)
{
    int kept = 0;
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        if (traced->kind == TR_TRACED_scale && traced->as.scale.factor == 1) {
            int copy = tr_trace_value(trace, traced->as.scale.y);
            trace->value[copy].same = tr_trace_value(trace, traced->as.scale.x);
        } else {
            trace->item[kept++] = *traced;
        }
    }
    trace->count = kept;
}

static tr_status run(struct tr_trace *trace, const struct tr_op_load_images *images)
{
    const struct tr_model *model = trace->model;
    struct recorder recorder = {.head = {.class = &recorder_class}, .trace = trace, .layer = -1};
    if (model->input.sequence && model->input.rank > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "the network takes sequences of vectors; exports take tokens, images or numbers");
    TR_TRY(make_values(trace, images));
    if (images) TR_TRY(trace_images(&recorder, images));
    for (int i = 0; i < model->layer_count; i++)
        if (!model->layers[i].alias) TR_TRY(trace_layer(&recorder, i));
    drop_copies(trace);
    trace->output = first_name(trace, output_value(trace, model->layer_count - 1));
    return TR_OK;
}

tr_status tr_trace_create(const struct tr_model *model, const float *parameters,
                          const struct tr_op_load_images *images, struct tr_trace **out)
{
    *out = NULL;
    struct tr_trace *trace = tr_alloc_zero(1, sizeof *trace);
    if (!trace) return TR_ENOMEM;
    trace->model = model;
    trace->parameters = parameters;
    tr_status status = run(trace, images);
    if (status != TR_OK) {
        tr_trace_destroy(&trace);
        return status;
    }
    *out = trace;
    return TR_OK;
}

void tr_trace_destroy(struct tr_trace **handle)
{
    struct tr_trace *trace = *handle;
    if (!trace) return;
    tr_free(trace->item);
    tr_free(trace->value);
    tr_free(trace->place);
    tr_free(trace);
    *handle = NULL;
}
