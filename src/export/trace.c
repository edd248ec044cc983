#include "export/trace.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/operation.h"

#include <assert.h>
#include <string.h>

/* Kinds are numbers of operations, and one more. */
_Static_assert((int)TR_TRACED_standardize == (int)TR_OPERATIONS, "kinds");

const char *tr_traced_name(enum tr_traced_kind kind)
{
    return kind == TR_TRACED_standardize ? "standardize"
                                         : tr_operation_of((enum tr_operation_number)kind)->name;
}

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

/* Layers do not allocate, copy or wait, so those slots stay empty. */
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

const float *tr_trace_address(const struct tr_trace *trace, int value)
{
    return trace->address + trace->value[value].first;
}

/* The value whose addresses have `pointer`, under its own name; -1 for none. */
static int own_value(const struct tr_trace *trace, const void *pointer)
{
    uintptr_t first = (uintptr_t)trace->address, at = (uintptr_t)pointer;
    const struct tr_traced_value *value = trace->value;
    int low = 0, high = trace->value_count;
    if (at < first || at >= first + (size_t)trace->address_count * sizeof *trace->address) return -1;
    const int64_t number = (int64_t)((at - first) / sizeof *trace->address);
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        *(value[middle].first <= number ? &low : &high) = middle;
    }
    return low;
}

int tr_trace_value(const struct tr_trace *trace, const void *pointer)
{
    const int value = own_value(trace, pointer);
    return value < 0 ? -1 : first_name(trace, value);
}

int64_t tr_trace_column(const struct tr_trace *trace, const void *pointer)
{
    return (const float *)pointer - tr_trace_address(trace, own_value(trace, pointer));
}

const struct tr_parameter *tr_trace_parameter(const struct tr_trace *trace, const float *pointer)
{
    const struct tr_model *model = trace->model;
    for (int i = 0; i < model->parameter_count; i++)
        if (pointer == trace->parameters + model->parameters[i].offset) return &model->parameters[i];
    return NULL;
}

static bool is_among(int value, const int *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i] == value) return true;
    return false;
}

struct tr_traced_ports tr_trace_ports(const struct tr_trace *trace, const struct tr_traced *traced)
{
    struct tr_traced_ports ports = {{-1, -1, -1, -1, -1, -1, -1, -1}, {-1, -1}};
    int reads = 0, writes = 0;
    if (traced->kind == TR_TRACED_standardize) {
        ports.read[0] = tr_trace_value(trace, traced->as.standardize.x);
        ports.write[0] = tr_trace_value(trace, traced->as.standardize.y);
        return ports;
    }
    const struct tr_operation *operation = tr_operation_of((enum tr_operation_number)traced->kind);
    for (int i = 0; i < operation->count; i++) {
        const struct tr_operand *operand = &operation->operand[i];
        const int value = tr_trace_value(trace, tr_operand_pointer(operand, &traced->as));
        if (value < 0) continue;
        if (tr_operand_reads(operand) && !is_among(value, ports.read, reads) && reads < TR_TRACED_READS)
            ports.read[reads++] = value;
        if (tr_operand_writes(operand) && !is_among(value, ports.write, writes) && writes < 2)
            ports.write[writes++] = value;
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

const char *tr_trace_given_name(const struct tr_trace *trace, int i)
{
    return trace->intake && trace->intake->count > 0 ? trace->intake->part[i].name : "";
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
                   tr_traced_name(traced->kind), format);
}

/* ---- making ---- */

/* The floats of a value for one example of one token. */
static int64_t floats_of(const struct tr_trace *trace, int value)
{
    const struct tr_model *model = trace->model;
    const int first = TR_VALUE_LAYERS + model->layer_count;
    if (value < first) return tr_shape_count(&trace->value[value].shape);
    const struct tr_layer *layer = &model->layers[(value - first) / TR_LAYER_BUFFERS];
    const int number = (value - first) % TR_LAYER_BUFFERS;
    const struct tr_buffer *buffer = &layer->buffer[number];
    if (number >= layer->buffer_count || buffer->backward_only || buffer->fused_only) return 1;
    return (buffer->bytes + buffer->fixed) / (int64_t)sizeof(float) + 1;
}

/* Places as far apart as values are long. */
static tr_status make_addresses(struct tr_trace *trace)
{
    for (int i = 0; i < trace->value_count; i++) {
        trace->value[i].first = trace->address_count;
        trace->address_count += floats_of(trace, i);
    }
    trace->address = tr_alloc_zero((size_t)trace->address_count, sizeof *trace->address);
    return trace->address ? TR_OK : TR_ENOMEM;
}

/* The layer for source `i` of joined ones: the slice of its numbers, which may be reshaped. */
static int layer_of_source(const struct tr_model *model, int i)
{
    int layer = 0;
    for (; layer < model->part_layers; layer++)
        if (!model->layers[layer].alias && i-- == 0) break;
    assert(layer < model->part_layers);
    return layer;
}

/* The value that source `i` becomes. */
static int entered_value(const struct tr_trace *trace, int i)
{
    const struct tr_model *model = trace->model;
    return model->part_layers > 0 ? TR_VALUE_LAYERS + layer_of_source(model, i) : TR_VALUE_INPUT;
}

static bool is_as_given(const struct tr_intake_part *part)
{
    return part->stored.rank != 3 && part->scaling.count == 0 && !part->numbers;
}

static tr_status make_values(struct tr_trace *trace, const struct tr_intake *intake)
{
    const struct tr_model *model = trace->model;
    trace->value_count = buffer_value(model, model->layer_count, 0);
    trace->value = tr_alloc_zero((size_t)trace->value_count, sizeof *trace->value);
    if (!trace->value) return TR_ENOMEM;
    for (int i = 0; i < trace->value_count; i++)
        trace->value[i] = (struct tr_traced_value){.layer = -1, .same = i};
    for (int i = 0; i < model->layer_count; i++) {
        trace->value[TR_VALUE_LAYERS + i].shape = model->layers[i].out;
        trace->value[TR_VALUE_LAYERS + i].layer = i;
        for (int k = 0; k < TR_LAYER_BUFFERS; k++) trace->value[buffer_value(model, i, k)].layer = i;
    }
    trace->value[TR_VALUE_INPUT].shape = trace->value[TR_VALUE_GIVEN].shape = model->input;
    trace->intake = intake;
    trace->given = intake && intake->count > 0 ? intake->count : 1;
    if (!intake || intake->count == 0) trace->value[TR_VALUE_INPUT].same = TR_VALUE_GIVEN;
    for (int i = 0; intake && i < intake->count; i++) {
        trace->value[TR_VALUE_GIVEN + i].shape = intake->part[i].stored;
        if (is_as_given(&intake->part[i])) trace->value[entered_value(trace, i)].same = TR_VALUE_GIVEN + i;
    }
    return make_addresses(trace);
}

static float *address_of(const struct tr_trace *trace, int value)
{
    return trace->address + trace->value[value].first;
}

static tr_status trace_image(struct recorder *recorder, const struct tr_op_load_images *images, int from,
                             int to)
{
    const struct tr_trace *trace = recorder->trace;
    struct tr_op_load_images op = *images;
    op.rows = 1;
    op.random = false;
    op.source = (const uint8_t *)address_of(trace, from);
    op.y = address_of(trace, to);
    return tr_device_load_images(&recorder->head, &op);
}

static tr_status trace_scaling(struct recorder *recorder, const struct tr_intake_part *part, int from, int to)
{
    const struct tr_scaling *scaling = &part->scaling;
    const struct tr_trace *trace = recorder->trace;
    const struct tr_op_standardize op = {
        .columns = tr_scaling_columns(scaling),
        .width = scaling->count,
        .categories = scaling->categories.columns > 0 ? &scaling->categories : NULL,
        .fill = part->fill,
        .mean = scaling->mean,
        .deviation = scaling->deviation,
        .x = address_of(trace, from),
        .y = address_of(trace, to),
    };
    return record(&recorder->head, TR_TRACED_standardize, &op, sizeof op);
}

static tr_status trace_intake(struct recorder *recorder, const struct tr_intake *intake)
{
    for (int i = 0; intake && i < intake->count; i++) {
        const struct tr_intake_part *part = &intake->part[i];
        const int from = TR_VALUE_GIVEN + i, to = entered_value(recorder->trace, i);
        recorder->layer = recorder->trace->value[to].layer;
        if (part->stored.rank == 3 || part->numbers)
            TR_TRY(trace_image(recorder, &part->images, from, to));
        else if (part->scaling.count > 0)
            TR_TRY(trace_scaling(recorder, part, from, to));
    }
    return TR_OK;
}

static tr_status trace_layer(struct recorder *recorder, int i)
{
    struct tr_trace *trace = recorder->trace;
    const struct tr_model *model = trace->model;
    const struct tr_layer *layer = &model->layers[i];
    recorder->layer = i;
    recorder->per_token =
        layer->in[0].sequence && (!layer->out.sequence || layer->tokens_in == layer->tokens_out);
    struct tr_layer_call call = {
        .device = &recorder->head,
        .layer = layer,
        .training = false,
        .examples = 1,
        .rows = 1,
        .global_rows = 1,
        .offset = (const int32_t *)address_of(trace, TR_VALUE_GIVEN),
        .token = (const int32_t *)address_of(trace, TR_VALUE_GIVEN),
        .layer_number = (uint32_t)i,
        .y = address_of(trace, TR_VALUE_LAYERS + i),
    };
    for (int k = 0; k < layer->input_count; k++)
        call.x[k] = address_of(trace, output_value(trace, layer->input[k]));
    for (int k = 0; k < layer->buffer_count; k++)
        if (!layer->buffer[k].fused_only) call.buffer[k] = address_of(trace, buffer_value(model, i, k));
    if (layer->tie.lender >= 0) {
        const struct tr_layer *lender = &model->layers[layer->tie.lender];
        call.borrowed.parameter = trace->parameters + model->parameters[lender->parameter[0]].offset;
    }
    for (int k = 0; k < layer->slot_count; k++)
        if (layer->slot[k] >= 0)
            call.parameter[k] = trace->parameters + model->parameters[layer->slot[k]].offset;
    return layer->class->forward(&call);
}

/* A copy (dropout, outside of training) is another name of its source. */
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

/* Operations on tokens read nothing of whole examples, so that they can all come first. */
static tr_status put_tokens_first(struct tr_trace *trace)
{
    struct tr_traced *sorted = tr_alloc((size_t)trace->count + 1, sizeof *sorted);
    int count = 0;
    if (!sorted) return TR_ENOMEM;
    for (int tokens = 1; tokens >= 0; tokens--)
        for (int i = 0; i < trace->count; i++)
            if (trace->item[i].per_token == (tokens == 1)) sorted[count++] = trace->item[i];
    tr_free(trace->item);
    trace->item = sorted;
    return TR_OK;
}

static tr_status run(struct tr_trace *trace, const struct tr_intake *intake)
{
    const struct tr_model *model = trace->model;
    struct recorder recorder = {.head = {.class = &recorder_class}, .trace = trace, .layer = -1};
    if (model->input.sequence && model->input.rank > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "the network takes sequences of vectors; exports take tokens, images or numbers");
    if (model->input.sequence && model->image_tokens > 0)
        return tr_fail(
            TR_EUNSUPPORTED,
            "the network takes texts and also makes sequences of images; exports know one or the other");
    TR_TRY(make_values(trace, intake));
    TR_TRY(trace_intake(&recorder, intake));
    /* The operations of joined sources have been added. */
    for (int i = intake && intake->count > 0 ? model->part_layers : 0; i < model->layer_count; i++)
        if (!model->layers[i].alias) TR_TRY(trace_layer(&recorder, i));
    drop_copies(trace);
    if (model->input.sequence) TR_TRY(put_tokens_first(trace));
    trace->output = first_name(trace, output_value(trace, model->layer_count - 1));
    return TR_OK;
}

tr_status tr_trace_create(const struct tr_model *model, const float *parameters,
                          const struct tr_intake *intake, struct tr_trace **out)
{
    *out = NULL;
    for (int i = 0; i < model->part_layers; i++)
        if (model->layers[i].fed)
            return tr_fail(TR_EUNSUPPORTED,
                           "the network takes %s beside a text (\"%s\"), which no format but ours can say "
                           "yet; use the checkpoint, or export parameters as numbers",
                           model->second_text[0] ? "another text" : "numbers", model->text_part);
    for (int i = 0; i < model->layer_count; i++)
        if (tr_layer_is_apart(&model->layers[i]))
            return tr_fail(
                TR_EUNSUPPORTED,
                "layer \"%s\" attends to sequences of another length, which no format but ours can say "
                "yet; use the checkpoint, or export parameters as numbers",
                model->layers[i].name);
    struct tr_trace *trace = tr_alloc_zero(1, sizeof *trace);
    if (!trace) return TR_ENOMEM;
    trace->model = model;
    trace->parameters = parameters;
    tr_status status = run(trace, intake);
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
    tr_free(trace->address);
    tr_free(trace);
    *handle = NULL;
}
