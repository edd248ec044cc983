#include "io/graph.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/region.h"
#include "io/proto/graph.pb-c.h"

#include <assert.h>
#include <string.h>

/* A graph being built. All its parts are in one region; after a failure nodes are NULL and nothing more is
   added. */
struct graph {
    struct tr_region region;
    const struct tr_model *model;
    Tensorboard__NodeDef **node;
    size_t count, room;
    char **output; /* [layers]: name of the node that a layer's consumers read */
};

/* Attributes in addition to a layer's options: its output's shape and type. */
#define OWN_ATTRIBUTES 2

/* ---- nodes ---- */

static Tensorboard__NodeDef *add_node(struct graph *graph, const char *op, size_t inputs, size_t attributes)
{
    struct tr_region *region = &graph->region;
    Tensorboard__NodeDef *node = tr_region_take(region, 1, sizeof *node);
    char **input = tr_region_take(region, inputs + 1, sizeof *input);
    Tensorboard__NodeDef__AttrEntry **attr = tr_region_take(region, attributes + 1, sizeof *attr);
    char *kind = tr_region_format(region, "%s", op);
    if (region->failed) return NULL;
    assert(graph->count < graph->room);
    tensorboard__node_def__init(node);
    node->op = kind;
    node->input = input;
    node->attr = attr;
    graph->node[graph->count++] = node;
    return node;
}

static void add_input(Tensorboard__NodeDef *node, char *name)
{
    node->input[node->n_input++] = name;
}

/* Adds an attribute without a value; NULL on failure. */
static Tensorboard__AttrValue *add_attribute(struct graph *graph, Tensorboard__NodeDef *node, const char *key)
{
    struct tr_region *region = &graph->region;
    Tensorboard__NodeDef__AttrEntry *entry = tr_region_take(region, 1, sizeof *entry);
    Tensorboard__AttrValue *value = tr_region_take(region, 1, sizeof *value);
    char *name = tr_region_format(region, "%s", key);
    if (region->failed) return NULL;
    tensorboard__node_def__attr_entry__init(entry);
    tensorboard__attr_value__init(value);
    entry->key = name;
    entry->value = value;
    node->attr[node->n_attr++] = entry;
    return value;
}

/* ---- shapes ---- */

#define SHAPE_DIMENSIONS (TR_MAX_RANK + 2)

static void add_dimension(Tensorboard__TensorShape *shape, Tensorboard__TensorShape__Dim *room, int64_t size)
{
    Tensorboard__TensorShape__Dim *dimension = &room[shape->n_dim];
    tensorboard__tensor_shape__dim__init(dimension);
    dimension->size = size;
    shape->dim[shape->n_dim++] = dimension;
}

/* The shape on an edge; `examples` puts the number of examples first, and that of tokens for a sequence. */
static Tensorboard__TensorShape *make_shape(struct graph *graph, const struct tr_shape *from, bool examples)
{
    struct tr_region *region = &graph->region;
    Tensorboard__TensorShape *shape = tr_region_take(region, 1, sizeof *shape);
    Tensorboard__TensorShape__Dim *room = tr_region_take(region, SHAPE_DIMENSIONS, sizeof *room),
                                  **pointers = tr_region_take(region, SHAPE_DIMENSIONS, sizeof *pointers);
    if (region->failed) return NULL;
    tensorboard__tensor_shape__init(shape);
    shape->dim = pointers;
    if (examples) add_dimension(shape, room, -1);
    if (examples && from->sequence) add_dimension(shape, room, -1);
    for (int i = 0; i < from->rank; i++) add_dimension(shape, room, from->size[i]);
    return shape;
}

/* The attributes from which TensorBoard labels edges. */
static void set_output(struct graph *graph, Tensorboard__NodeDef *node, Tensorboard__DataType type,
                       const struct tr_shape *from, bool examples)
{
    struct tr_region *region = &graph->region;
    Tensorboard__AttrValue *dtype = add_attribute(graph, node, "dtype");
    Tensorboard__AttrValue *shapes = add_attribute(graph, node, "_output_shapes");
    Tensorboard__AttrValue__ListValue *list = tr_region_take(region, 1, sizeof *list);
    Tensorboard__TensorShape **item = tr_region_take(region, 1, sizeof *item),
                             *shape = make_shape(graph, from, examples);
    if (region->failed) return;
    dtype->value_case = TENSORBOARD__ATTR_VALUE__VALUE_TYPE;
    dtype->type = type;
    tensorboard__attr_value__list_value__init(list);
    item[0] = shape;
    list->n_shape = 1;
    list->shape = item;
    shapes->value_case = TENSORBOARD__ATTR_VALUE__VALUE_LIST;
    shapes->list = list;
}

/* ---- layers ---- */

/* Sets an attribute to an option's value. */
static tr_status add_option(struct graph *graph, Tensorboard__NodeDef *node, const struct tr_layer *layer,
                            int32_t i)
{
    const struct tr_layer_class *class = layer->class;
    struct tr_value value;
    /* Nodes belong to the model file's tree, which may be gone: initializers, of which a model keeps only
       their meaning. */
    if (class->options[i].type == TR_OPTION_NODE) return TR_OK;
    tr_status status = tr_options_get(class->options, i, layer->options, &value);
    if (status != TR_OK || value.kind == TR_VALUE_NONE) return status;
    Tensorboard__AttrValue *attribute = add_attribute(graph, node, class->options[i].key);
    char *text = value.text ? tr_region_format(&graph->region, "%s", value.text) : NULL;
    tr_free(value.text);
    if (graph->region.failed) return TR_ENOMEM;
    switch (value.kind) {
    case TR_VALUE_BOOL:
        attribute->value_case = TENSORBOARD__ATTR_VALUE__VALUE_B;
        attribute->b = value.integer != 0;
        break;
    case TR_VALUE_INTEGER:
        attribute->value_case = TENSORBOARD__ATTR_VALUE__VALUE_I;
        attribute->i = value.integer;
        break;
    case TR_VALUE_NUMBER:
        attribute->value_case = TENSORBOARD__ATTR_VALUE__VALUE_F;
        attribute->f = (float)value.number;
        break;
    case TR_VALUE_TEXT:
        attribute->value_case = TENSORBOARD__ATTR_VALUE__VALUE_S;
        attribute->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
        break;
    case TR_VALUE_NONE:
        break;
    }
    return TR_OK;
}

/* A parameter's name is "layer.name"; here it is "layer/name". */
static char *parameter_name(struct graph *graph, const struct tr_layer *layer,
                            const struct tr_parameter *parameter)
{
    return tr_region_format(&graph->region, "%s/%s", layer->name, parameter->name + strlen(layer->name) + 1);
}

static tr_status add_parameters(struct graph *graph, const struct tr_layer *layer)
{
    for (int k = 0; k < layer->parameter_count; k++) {
        const struct tr_parameter *parameter = &graph->model->parameters[layer->parameter[k]];
        Tensorboard__NodeDef *node = add_node(graph, "Variable", 0, OWN_ATTRIBUTES);
        if (!node) return TR_ENOMEM;
        node->name = parameter_name(graph, layer, parameter);
        set_output(graph, node, TENSORBOARD__DATA_TYPE__DT_FLOAT, &parameter->shape, false);
    }
    return graph->region.failed ? TR_ENOMEM : TR_OK;
}

/* The activation that a layer applies to its own output, as a text to be freed; NULL where it does not. */
static tr_status activation_of(const struct tr_layer *layer, char **out)
{
    const struct tr_layer_class *class = layer->class;
    *out = NULL;
    for (int32_t i = 0; i < class->option_count; i++) {
        struct tr_value value;
        if (strcmp(class->options[i].key, "activation") != 0) continue;
        TR_TRY(tr_options_get(class->options, i, layer->options, &value));
        if (value.text && strcmp(value.text, "none") != 0)
            *out = value.text;
        else
            tr_free(value.text);
        break;
    }
    return TR_OK;
}

static char *source_of(const struct graph *graph, int layer)
{
    static char input[] = "input";
    return layer < 0 ? input : graph->output[layer];
}

static tr_status add_operation(struct graph *graph, int i)
{
    const struct tr_layer *layer = &graph->model->layers[i];
    const struct tr_layer_class *class = layer->class;
    size_t inputs = (size_t)layer->input_count + (size_t)layer->parameter_count;
    Tensorboard__NodeDef *node =
        add_node(graph, class->name, inputs, OWN_ATTRIBUTES + (size_t) class->option_count);
    if (!node) return TR_ENOMEM;
    node->name = graph->output[i] = tr_region_format(&graph->region, "%s/%s", layer->name, class->name);
    for (int k = 0; k < layer->input_count; k++) add_input(node, source_of(graph, layer->input[k]));
    for (int k = 0; k < layer->parameter_count; k++)
        add_input(node, parameter_name(graph, layer, &graph->model->parameters[layer->parameter[k]]));
    for (int32_t k = 0; k < class->option_count; k++) TR_TRY(add_option(graph, node, layer, k));
    set_output(graph, node, TENSORBOARD__DATA_TYPE__DT_FLOAT, &layer->out, true);
    return graph->region.failed ? TR_ENOMEM : TR_OK;
}

static tr_status add_activation(struct graph *graph, int i)
{
    const struct tr_layer *layer = &graph->model->layers[i];
    char *activation;
    TR_TRY(activation_of(layer, &activation));
    if (!activation) return TR_OK;
    Tensorboard__NodeDef *node = add_node(graph, activation, 1, OWN_ATTRIBUTES);
    char *name = tr_region_format(&graph->region, "%s/%s", layer->name, activation);
    tr_free(activation);
    if (!node || !name) return TR_ENOMEM;
    add_input(node, graph->output[i]);
    node->name = graph->output[i] = name;
    set_output(graph, node, TENSORBOARD__DATA_TYPE__DT_FLOAT, &layer->out, true);
    return graph->region.failed ? TR_ENOMEM : TR_OK;
}

/* ---- input and loss ---- */

static tr_status add_placeholder(struct graph *graph, const char *name, Tensorboard__DataType type,
                                 const struct tr_shape *shape)
{
    Tensorboard__NodeDef *node = add_node(graph, "Placeholder", 0, OWN_ATTRIBUTES);
    if (!node) return TR_ENOMEM;
    node->name = tr_region_format(&graph->region, "%s", name);
    set_output(graph, node, type, shape, true);
    return graph->region.failed ? TR_ENOMEM : TR_OK;
}

static tr_status add_loss(struct graph *graph)
{
    static const struct tr_shape one = {0};
    const struct tr_model *model = graph->model;
    bool classes = tr_loss_class_of(&model->loss)->classifies;
    const char *truth = classes ? "labels" : "targets", *kind = tr_loss_class_of(&model->loss)->name;
    TR_TRY(add_placeholder(graph, truth,
                           classes ? TENSORBOARD__DATA_TYPE__DT_INT32 : TENSORBOARD__DATA_TYPE__DT_FLOAT,
                           classes ? &one : &model->output));
    Tensorboard__NodeDef *node = add_node(graph, kind, 2, OWN_ATTRIBUTES);
    if (!node) return TR_ENOMEM;
    node->name = tr_region_format(&graph->region, "loss/%s", kind);
    add_input(node, source_of(graph, model->layer_count - 1));
    add_input(node, graph->node[graph->count - 2]->name);
    set_output(graph, node, TENSORBOARD__DATA_TYPE__DT_FLOAT, &one, false);
    return graph->region.failed ? TR_ENOMEM : TR_OK;
}

static tr_status add_all(struct graph *graph)
{
    const struct tr_model *model = graph->model;
    /* Input, targets and loss; at most two nodes for a layer, besides its parameters. */
    graph->room = 3 + 2 * (size_t)model->layer_count + (size_t)model->parameter_count;
    graph->node = tr_region_take(&graph->region, graph->room, sizeof *graph->node);
    graph->output = tr_region_take(&graph->region, (size_t)model->layer_count + 1, sizeof *graph->output);
    if (graph->region.failed) return TR_ENOMEM;
    TR_TRY(add_placeholder(graph, "input",
                           model->vocabulary > 0 ? TENSORBOARD__DATA_TYPE__DT_INT32
                                                 : TENSORBOARD__DATA_TYPE__DT_FLOAT,
                           &model->input));
    for (int i = 0; i < model->layer_count; i++) {
        TR_TRY(add_parameters(graph, &model->layers[i]));
        TR_TRY(add_operation(graph, i));
        TR_TRY(add_activation(graph, i));
    }
    return add_loss(graph);
}

tr_status tr_graph_pack(const struct tr_model *model, uint8_t **bytes, size_t *size)
{
    struct graph graph = {.model = model};
    Tensorboard__GraphDef message = TENSORBOARD__GRAPH_DEF__INIT;
    Tensorboard__VersionDef versions = TENSORBOARD__VERSION_DEF__INIT;
    tr_status status = add_all(&graph);
    if (status == TR_OK) {
        versions.producer = 22; /* of TensorFlow 1.0 */
        message.versions = &versions;
        message.n_node = graph.count;
        message.node = graph.node;
        *size = tensorboard__graph_def__get_packed_size(&message);
        *bytes = tr_alloc(*size, 1);
        if (*bytes)
            tensorboard__graph_def__pack(&message, *bytes);
        else
            status = TR_ENOMEM;
    }
    tr_region_release(&graph.region);
    return status;
}
