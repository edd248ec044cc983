/* Graphs: every network has one in which all edges lead somewhere. */
#include "io/graph.h"

#include "base/alloc.h"
#include "io/proto/graph.pb-c.h"
#include "refuse.h"
#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static Tensorboard__GraphDef *graph_of(const struct tr_model *model)
{
    uint8_t *bytes;
    size_t size;
    must(tr_graph_pack(model, &bytes, &size));
    Tensorboard__GraphDef *graph = tensorboard__graph_def__unpack(NULL, size, bytes);
    assert_non_null(graph);
    tr_free(bytes);
    return graph;
}

static const Tensorboard__NodeDef *find(const Tensorboard__GraphDef *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        if (strcmp(graph->node[i]->name, name) == 0) return graph->node[i];
    return NULL;
}

static const Tensorboard__AttrValue *attribute(const Tensorboard__NodeDef *node, const char *key)
{
    for (size_t i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i]->key, key) == 0) return node->attr[i]->value;
    return NULL;
}

/* The node's output shape as "-1x28x28x1", "" for a scalar. */
static const char *shape_of(const Tensorboard__NodeDef *node)
{
    static char text[128];
    const Tensorboard__AttrValue *value = attribute(node, "_output_shapes");
    assert_non_null(value);
    assert_int_equal(value->value_case, TENSORBOARD__ATTR_VALUE__VALUE_LIST);
    assert_int_equal(value->list->n_shape, 1);
    const Tensorboard__TensorShape *shape = value->list->shape[0];
    int at = 0;
    *text = 0;
    for (size_t i = 0; i < shape->n_dim; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "x" : "",
                       (long long)shape->dim[i]->size);
    return text;
}

static void check_nodes(const struct tr_model *model, const Tensorboard__GraphDef *graph)
{
    size_t placeholders = 0, variables = 0, read[1024] = {0};
    assert_in_range(graph->n_node, 1, 1024);
    for (size_t i = 0; i < graph->n_node; i++) {
        const Tensorboard__NodeDef *node = graph->node[i];
        assert_ptr_equal(find(graph, node->name), node); /* names are unique */
        placeholders += strcmp(node->op, "Placeholder") == 0;
        variables += strcmp(node->op, "Variable") == 0;
        shape_of(node);
        assert_int_equal(attribute(node, "dtype")->value_case, TENSORBOARD__ATTR_VALUE__VALUE_TYPE);
        for (size_t k = 0; k < node->n_input; k++) {
            const Tensorboard__NodeDef *from = find(graph, node->input[k]);
            if (!from) fail_msg("%s reads %s, which is not there", node->name, node->input[k]);
            for (size_t j = 0; j < graph->n_node; j++) read[j] += graph->node[j] == from;
        }
    }
    assert_int_equal(placeholders, 2);
    assert_int_equal(variables, model->parameter_count);
    /* All but the loss, which is last, are read by somebody; layers may go unused, parameters not. */
    for (size_t i = 0; i < graph->n_node; i++)
        if (strcmp(graph->node[i]->op, "Variable") == 0) assert_int_equal(read[i], 1);
    assert_int_equal(read[graph->n_node - 1], 0);
    assert_int_equal(strncmp(graph->node[graph->n_node - 1]->name, "loss/", 5), 0);
}

static void every_network_has_a_graph(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        struct tr_model *model;
        must(network_build(networks[i].text, networks[i].input, networks[i].vocabulary, &model));
        Tensorboard__GraphDef *graph = graph_of(model);
        check_nodes(model, graph);
        for (int k = 0; k < model->layer_count; k++) {
            char name[2 * TR_NAME_SIZE + 32];
            snprintf(name, sizeof name, "%s/%s", model->layers[k].name, model->layers[k].class->name);
            const Tensorboard__NodeDef *node = find(graph, name);
            if (!node) fail_msg("network \"%s\" has no node %s", networks[i].name, name);
            assert_int_equal(node->n_input, model->layers[k].input_count + model->layers[k].parameter_count);
        }
        tensorboard__graph_def__free_unpacked(graph, NULL);
        tr_model_destroy(&model);
    }
}

static const char small[] = "layers:\n"
                            "- conv: {name: first, filters: 4, kernel: [3, 2], activation: relu}\n"
                            "- flatten\n"
                            "- dropout: 0.25\n"
                            "- dense: {name: last, units: 10}\n";

static void nodes_say_what_layers_are(void **state)
{
    (void)state;
    struct tr_model *model;
    must(network_build(small, "8x8x3", 0, &model));
    Tensorboard__GraphDef *graph = graph_of(model);
    assert_string_equal(shape_of(find(graph, "input")), "-1x8x8x3");
    const Tensorboard__NodeDef *conv = find(graph, "first/conv"), *last = find(graph, "last/dense"),
                               *loss = find(graph, "loss/softmax_cross_entropy");
    assert_string_equal(conv->op, "conv");
    assert_string_equal(conv->input[0], "input");
    assert_string_equal(conv->input[1], "first/weights");
    assert_string_equal(conv->input[2], "first/bias");
    assert_string_equal(shape_of(conv), "-1x6x7x4");
    assert_int_equal(attribute(conv, "filters")->i, 4);
    assert_memory_equal(attribute(conv, "kernel")->s.data, "[3, 2]", 6);
    assert_memory_equal(attribute(conv, "padding")->s.data, "valid", 5);
    assert_true(attribute(find(graph, "dropout1/dropout"), "rate")->f == 0.25f);
    assert_string_equal(find(graph, "first/relu")->input[0], "first/conv");
    assert_string_equal(find(graph, "flatten1/flatten")->input[0], "first/relu");
    assert_string_equal(shape_of(find(graph, "first/weights")), "3x2x3x4");
    assert_string_equal(shape_of(last), "-1x10");
    assert_string_equal(loss->input[0], "last/dense");
    assert_string_equal(loss->input[1], "labels");
    assert_string_equal(shape_of(loss), "");
    tensorboard__graph_def__free_unpacked(graph, NULL);
    tr_model_destroy(&model);
}

static void expect_node(const Tensorboard__GraphDef *graph, const char *name, const char *shape,
                        Tensorboard__DataType type)
{
    const Tensorboard__NodeDef *node = find(graph, name);
    if (!node) fail_msg("there is no node %s", name);
    assert_string_equal(shape_of(node), shape);
    assert_int_equal(attribute(node, "dtype")->type, type);
}

/* Words and classes are whole numbers, all else floats; TensorFlow wants to know who made the graph. */
static void edges_have_types(void **state)
{
    (void)state;
    struct tr_model *model;
    must(network_build("layers:\n- embedding: 5\n- global_average_pool\n- dense: 3\n", "tokens", 11, &model));
    Tensorboard__GraphDef *graph = graph_of(model);
    assert_int_equal(graph->versions->producer, 22);
    expect_node(graph, "input", "-1x-1", TENSORBOARD__DATA_TYPE__DT_INT32);
    expect_node(graph, "labels", "-1", TENSORBOARD__DATA_TYPE__DT_INT32);
    expect_node(graph, "embedding1/weights", "11x5", TENSORBOARD__DATA_TYPE__DT_FLOAT);
    expect_node(graph, "embedding1/embedding", "-1x-1x5", TENSORBOARD__DATA_TYPE__DT_FLOAT);
    expect_node(graph, "dense1/dense", "-1x3", TENSORBOARD__DATA_TYPE__DT_FLOAT);
    tensorboard__graph_def__free_unpacked(graph, NULL);
    tr_model_destroy(&model);
    must(network_build("layers:\n- dense: 2\nloss: mean_squared_error\n", "6", 0, &model));
    graph = graph_of(model);
    expect_node(graph, "input", "-1x6", TENSORBOARD__DATA_TYPE__DT_FLOAT);
    expect_node(graph, "targets", "-1x2", TENSORBOARD__DATA_TYPE__DT_FLOAT);
    expect_node(graph, "loss/mean_squared_error", "", TENSORBOARD__DATA_TYPE__DT_FLOAT);
    assert_string_equal(find(graph, "loss/mean_squared_error")->input[1], "targets");
    tensorboard__graph_def__free_unpacked(graph, NULL);
    tr_model_destroy(&model);
}

/* A large graph takes memory for each of its parts. */
static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    struct tr_model *model;
    static char text[16384] = "layers:\n";
    for (int i = 0; i < 400; i++)
        strcat(text, i % 8 ? "- tanh\n" : "- dense: {units: 3, activation: tanh}\n");
    must(network_build(text, "4", 0, &model));
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        uint8_t *bytes = NULL;
        size_t size;
        refuse_begin(at);
        tr_status status = tr_graph_pack(model, &bytes, &size);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(bytes);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_has_a_graph),
        cmocka_unit_test(nodes_say_what_layers_are),
        cmocka_unit_test(edges_have_types),
        cmocka_unit_test(failing_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
