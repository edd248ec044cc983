#include "io/onnx.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/proto/onnx.pb-c.h"

#include <assert.h>
#include <string.h>

#define IR_VERSION    8
#define OPSET_VERSION 13

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INTEGER = 2, ATTRIBUTE_INTEGERS = 7 };

/* All parts of the model are in blocks that are freed with it; the arrays of pointers grow separately. */
struct block {
    struct block *next;
    union {
        int64_t align;
        double align_too;
    } data[];
};

struct tr_onnx {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto operators, *operators_list[1];
    struct block *blocks;
    bool failed;
};

/* ---- memory ---- */

/* Zeros, or NULL. */
static void *take(tr_onnx *onnx, size_t count, size_t size)
{
    if (onnx->failed) return NULL;
    bool fits = !size || count <= (SIZE_MAX - sizeof(struct block)) / size;
    struct block *block = tr_alloc_zero(1, fits ? sizeof *block + count * size : SIZE_MAX);
    if (!block) {
        onnx->failed = true;
        return NULL;
    }
    block->next = onnx->blocks;
    onnx->blocks = block;
    return block->data;
}

static char *copy_text(tr_onnx *onnx, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = take(onnx, size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

static char **copy_texts(tr_onnx *onnx, int count, const char *const *texts)
{
    char **copies = take(onnx, (size_t)count, sizeof *copies);
    for (int i = 0; copies && i < count; i++) copies[i] = copy_text(onnx, texts[i]);
    return copies;
}

/* Appends to one of the model's lists. */
static bool append(tr_onnx *onnx, void ***list, size_t *count, void *item)
{
    if (!onnx->failed && !tr_grow(list, (int64_t)*count, sizeof **list)) onnx->failed = true;
    if (onnx->failed) return false;
    (*list)[(*count)++] = item;
    return true;
}
#define APPEND(onnx, owner, member, item) append(onnx, (void ***)&(owner)->member, &(owner)->n_##member, item)

/* ---- making ---- */

tr_status tr_onnx_create(const char *name, const char *description, tr_onnx **out)
{
    *out = NULL;
    tr_onnx *onnx = tr_alloc_zero(1, sizeof *onnx);
    if (!onnx) return TR_ENOMEM;
    onnx__model_proto__init(&onnx->model);
    onnx__graph_proto__init(&onnx->graph);
    onnx__operator_set_id_proto__init(&onnx->operators);
    onnx->operators_list[0] = &onnx->operators;
    onnx->operators.domain = copy_text(onnx, "");
    onnx->operators.has_version = true;
    onnx->operators.version = OPSET_VERSION;
    onnx->model.has_ir_version = true;
    onnx->model.ir_version = IR_VERSION;
    onnx->model.n_opset_import = 1;
    onnx->model.opset_import = onnx->operators_list;
    onnx->model.producer_name = copy_text(onnx, "trireme");
    onnx->model.producer_version = copy_text(onnx, TRIREME_VERSION);
    onnx->model.doc_string = copy_text(onnx, description);
    onnx->model.graph = &onnx->graph;
    onnx->graph.name = copy_text(onnx, name);
    if (onnx->failed) {
        tr_onnx_destroy(&onnx);
        return TR_ENOMEM;
    }
    *out = onnx;
    return TR_OK;
}

void tr_onnx_destroy(tr_onnx **handle)
{
    tr_onnx *onnx = *handle;
    if (!onnx) return;
    for (size_t i = 0; i < onnx->graph.n_node; i++) tr_free(onnx->graph.node[i]->attribute);
    tr_free(onnx->graph.node);
    tr_free(onnx->graph.initializer);
    tr_free(onnx->graph.input);
    tr_free(onnx->graph.output);
    tr_free(onnx->graph.value_info);
    tr_free(onnx->model.metadata_props);
    while (onnx->blocks) {
        struct block *next = onnx->blocks->next;
        tr_free(onnx->blocks);
        onnx->blocks = next;
    }
    tr_free(onnx);
    *handle = NULL;
}

void tr_onnx_add_metadata(tr_onnx *onnx, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry = take(onnx, 1, sizeof *entry);
    if (!entry) return;
    onnx__string_string_entry_proto__init(entry);
    entry->key = copy_text(onnx, key);
    entry->value = copy_text(onnx, value);
    APPEND(onnx, &onnx->model, metadata_props, entry);
}

/* ---- values ---- */

static Onnx__TensorShapeProto__Dimension *make_size(tr_onnx *onnx, const struct tr_onnx_size *size)
{
    Onnx__TensorShapeProto__Dimension *dimension = take(onnx, 1, sizeof *dimension);
    if (!dimension) return NULL;
    onnx__tensor_shape_proto__dimension__init(dimension);
    if (size->name) {
        dimension->dim_param = copy_text(onnx, size->name);
    } else {
        dimension->has_dim_value = true;
        dimension->dim_value = size->count;
    }
    return dimension;
}

static Onnx__ValueInfoProto *make_info(tr_onnx *onnx, const struct tr_onnx_info *info)
{
    struct {
        Onnx__ValueInfoProto value;
        Onnx__TypeProto type;
        Onnx__TypeProto__Tensor tensor;
        Onnx__TensorShapeProto shape;
        Onnx__TensorShapeProto__Dimension *size[TR_ONNX_RANK];
    } *made = take(onnx, 1, sizeof *made);
    if (!made) return NULL;
    assert(info->rank <= TR_ONNX_RANK);
    onnx__value_info_proto__init(&made->value);
    onnx__type_proto__init(&made->type);
    onnx__type_proto__tensor__init(&made->tensor);
    onnx__tensor_shape_proto__init(&made->shape);
    made->value.name = copy_text(onnx, info->name);
    if (info->description) made->value.doc_string = copy_text(onnx, info->description);
    made->value.type = &made->type;
    made->type.tensor_type = &made->tensor;
    made->tensor.has_elem_type = true;
    made->tensor.elem_type = info->type;
    made->tensor.shape = &made->shape;
    made->shape.n_dim = (size_t)info->rank;
    made->shape.dim = made->size;
    for (int i = 0; i < info->rank; i++) made->size[i] = make_size(onnx, &info->size[i]);
    return &made->value;
}

void tr_onnx_input(tr_onnx *onnx, const struct tr_onnx_info *info)
{
    Onnx__ValueInfoProto *value = make_info(onnx, info);
    APPEND(onnx, &onnx->graph, input, value);
}

void tr_onnx_output(tr_onnx *onnx, const struct tr_onnx_info *info)
{
    Onnx__ValueInfoProto *value = make_info(onnx, info);
    APPEND(onnx, &onnx->graph, output, value);
}

void tr_onnx_between(tr_onnx *onnx, const struct tr_onnx_info *info)
{
    Onnx__ValueInfoProto *value = make_info(onnx, info);
    APPEND(onnx, &onnx->graph, value_info, value);
}

/* ---- constants ---- */

static void *make_tensor(tr_onnx *onnx, const char *name, enum tr_onnx_type type, size_t item, int rank,
                         const int64_t *size)
{
    Onnx__TensorProto *tensor = take(onnx, 1, sizeof *tensor);
    int64_t *sizes = take(onnx, (size_t)rank, sizeof *sizes);
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= (size_t)size[i];
    void *data = take(onnx, count, item);
    if (!tensor || !sizes || !data) return NULL;
    onnx__tensor_proto__init(tensor);
    for (int i = 0; i < rank; i++) sizes[i] = size[i];
    tensor->n_dims = (size_t)rank;
    tensor->dims = sizes;
    tensor->has_data_type = true;
    tensor->data_type = type;
    tensor->name = copy_text(onnx, name);
    tensor->has_raw_data = true;
    tensor->raw_data = (ProtobufCBinaryData){count * item, data};
    return APPEND(onnx, &onnx->graph, initializer, tensor) ? data : NULL;
}

float *tr_onnx_floats(tr_onnx *onnx, const char *name, int rank, const int64_t *size)
{
    return make_tensor(onnx, name, TR_ONNX_FLOAT, sizeof(float), rank, size);
}

int64_t *tr_onnx_integers(tr_onnx *onnx, const char *name, int64_t count, const int64_t *values)
{
    int64_t *data = make_tensor(onnx, name, TR_ONNX_INT64, sizeof *data, 1, &count);
    if (data && values) memcpy(data, values, (size_t)count * sizeof *data);
    return data;
}

void tr_onnx_integer(tr_onnx *onnx, const char *name, int64_t value)
{
    int64_t *data = make_tensor(onnx, name, TR_ONNX_INT64, sizeof *data, 0, NULL);
    if (data) *data = value;
}

/* ---- nodes ---- */

void tr_onnx_node(tr_onnx *onnx, const char *operation, const char *name, int inputs,
                  const char *const *input, int outputs, const char *const *output)
{
    Onnx__NodeProto *node = take(onnx, 1, sizeof *node);
    if (!node) return;
    onnx__node_proto__init(node);
    node->op_type = copy_text(onnx, operation);
    node->name = copy_text(onnx, name);
    node->n_input = (size_t)inputs;
    node->input = copy_texts(onnx, inputs, input);
    node->n_output = (size_t)outputs;
    node->output = copy_texts(onnx, outputs, output);
    APPEND(onnx, &onnx->graph, node, node);
}

/* An attribute of the last node, or NULL. */
static Onnx__AttributeProto *make_attribute(tr_onnx *onnx, const char *name, int type)
{
    Onnx__AttributeProto *attribute = take(onnx, 1, sizeof *attribute);
    if (!attribute) return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->name = copy_text(onnx, name);
    attribute->has_type = true;
    attribute->type = type;
    Onnx__NodeProto *node = onnx->graph.node[onnx->graph.n_node - 1];
    return APPEND(onnx, node, attribute, attribute) ? attribute : NULL;
}

void tr_onnx_attribute_float(tr_onnx *onnx, const char *name, float value)
{
    Onnx__AttributeProto *attribute = make_attribute(onnx, name, ATTRIBUTE_FLOAT);
    if (!attribute) return;
    attribute->has_f = true;
    attribute->f = value;
}

void tr_onnx_attribute_integer(tr_onnx *onnx, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute = make_attribute(onnx, name, ATTRIBUTE_INTEGER);
    if (!attribute) return;
    attribute->has_i = true;
    attribute->i = value;
}

void tr_onnx_attribute_integers(tr_onnx *onnx, const char *name, int64_t count, const int64_t *values)
{
    Onnx__AttributeProto *attribute = make_attribute(onnx, name, ATTRIBUTE_INTEGERS);
    int64_t *copy = take(onnx, (size_t)count, sizeof *copy);
    if (!attribute || !copy) return;
    memcpy(copy, values, (size_t)count * sizeof *copy);
    attribute->n_ints = (size_t)count;
    attribute->ints = copy;
}

static void rename_texts(tr_onnx *onnx, size_t count, char **texts, const char *from, const char *to)
{
    for (size_t i = 0; i < count && !onnx->failed; i++)
        if (strcmp(texts[i], from) == 0) texts[i] = copy_text(onnx, to);
}

void tr_onnx_rename(tr_onnx *onnx, const char *from, const char *to)
{
    for (size_t i = 0; i < onnx->graph.n_node && !onnx->failed; i++) {
        Onnx__NodeProto *node = onnx->graph.node[i];
        rename_texts(onnx, node->n_input, node->input, from, to);
        rename_texts(onnx, node->n_output, node->output, from, to);
    }
    for (size_t i = 0; i < onnx->graph.n_value_info && !onnx->failed; i++)
        rename_texts(onnx, 1, &onnx->graph.value_info[i]->name, from, to);
}

/* ---- writing ---- */

/* Gathers small pieces; large ones go straight to the file. */
struct sink {
    ProtobufCBuffer base;
    struct tr_file_writer *writer;
    tr_status status;
    size_t count;
    uint8_t data[1 << 16];
};

static void empty_sink(struct sink *sink)
{
    if (sink->status == TR_OK) sink->status = tr_file_write(sink->writer, sink->data, sink->count);
    sink->count = 0;
}

static void append_bytes(ProtobufCBuffer *buffer, size_t size, const uint8_t *data)
{
    struct sink *sink = (struct sink *)buffer;
    if (size > sizeof sink->data - sink->count) empty_sink(sink);
    if (size > sizeof sink->data) {
        if (sink->status == TR_OK) sink->status = tr_file_write(sink->writer, data, size);
        return;
    }
    memcpy(sink->data + sink->count, data, size);
    sink->count += size;
}

tr_status tr_onnx_write(const tr_onnx *onnx, struct tr_file_writer *writer)
{
    if (onnx->failed) return TR_ENOMEM;
    size_t size = onnx__model_proto__get_packed_size(&onnx->model);
    if (size > INT32_MAX)
        return tr_fail(TR_EUNSUPPORTED,
                       "the model takes %zu bytes, an ONNX file at most %d; export to another format", size,
                       INT32_MAX);
    struct sink *sink = tr_alloc(1, sizeof *sink);
    if (!sink) return TR_ENOMEM;
    sink->base.append = append_bytes;
    sink->writer = writer;
    sink->status = TR_OK;
    sink->count = 0;
    onnx__model_proto__pack_to_buffer(&onnx->model, &sink->base);
    empty_sink(sink);
    tr_status status = sink->status;
    tr_free(sink);
    return status;
}
