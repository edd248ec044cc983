/* The layout of PyTorch: names, shapes and orders of its layers. */
#include "export/layout_list.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct tr_shape no_order;

/* Replaces the axes: `count` pairs of size and stride. */
static void set_axes(struct tr_layout_tensor *tensor, int count, const int64_t (*axis)[2])
{
    assert(count <= TR_LAYOUT_AXES);
    tensor->axes = count;
    for (int i = 0; i < count; i++) {
        tensor->size[i] = axis[i][0];
        tensor->stride[i] = axis[i][1];
    }
}

static void set_shape(struct tr_layout_tensor *tensor, int rank, const int64_t *shape)
{
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
}

/* From [in][out], where the step of one input is `out` numbers, to [out][in]; inputs that were an image
 * channels first.
 */
static void add_matrix(struct layout_lister *lister, int parameter, const char *name)
{
    struct tr_layout_tensor *tensor = layout_add(lister, parameter, name);
    int64_t in = tensor->shape[0], out = tensor->shape[1];
    const int64_t *image = lister->order.size;
    set_shape(tensor, 2, (const int64_t[]){out, in});
    if (lister->order.rank == 0)
        set_axes(tensor, 2, (const int64_t[][2]){{out, 1}, {in, out}});
    else
        set_axes(tensor, 4,
                 (const int64_t[][2]){{out, 1},
                                      {image[2], out},
                                      {image[0], image[1] * image[2] * out},
                                      {image[1], image[2] * out}});
}

/* A number for each input: of an image that stays one as [channels, height, width], else as a vector. */
static void add_vector(struct layout_lister *lister, int parameter, const char *name)
{
    struct tr_layout_tensor *tensor = layout_add(lister, parameter, name);
    const struct tr_shape *in = &lister->layer->in[0], *image = in->rank == 3 ? in : &lister->order;
    if (image->rank == 0) return;
    const int64_t *size = image->size;
    set_axes(tensor, 3, (const int64_t[][2]){{size[2], 1}, {size[0], size[1] * size[2]}, {size[1], size[2]}});
    if (in->rank == 3) set_shape(tensor, 3, (const int64_t[]){size[2], size[0], size[1]});
}

static void list_conv(struct layout_lister *lister)
{
    struct tr_layout_tensor *tensor = layout_add(lister, 0, "weight");
    int64_t height = tensor->shape[0], width = tensor->shape[1], in = tensor->shape[2],
            out = tensor->shape[3];
    set_shape(tensor, 4, (const int64_t[]){out, in, height, width});
    set_axes(tensor, 4,
             (const int64_t[][2]){{out, 1}, {in, out}, {height, width * in * out}, {width, in * out}});
    if (lister->layer->parameter_count > 1) layout_add(lister, 1, "bias");
}

static void list_dense(struct layout_lister *lister)
{
    add_matrix(lister, 0, "weight");
    if (lister->layer->parameter_count > 1) layout_add(lister, 1, "bias");
}

static void list_embedding(struct layout_lister *lister)
{
    layout_add(lister, 0, "weight");
}

static void list_attention(struct layout_lister *lister)
{
    add_matrix(lister, 0, "in_proj_weight");
    add_matrix(lister, 1, "out_proj.weight");
    if (lister->layer->parameter_count == 2) return;
    layout_add(lister, 2, "in_proj_bias");
    if (lister->layer->parameter_count == 3) return;
    layout_add(lister, 3, "out_proj.bias");
}

static void list_cross_attention(struct layout_lister *lister)
{
    static const char *const names[] = {"query", "memory", "out_proj"};
    char name[32];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.weight", names[i]);
        add_matrix(lister, i, name);
    }
    for (int i = 0; i < 3 && lister->layer->parameter_count > 3; i++) {
        snprintf(name, sizeof name, "%s.bias", names[i]);
        layout_add(lister, 3 + i, name);
    }
}

static void list_lstm(struct layout_lister *lister)
{
    add_matrix(lister, 0, "weight_ih_l0");
    add_matrix(lister, 1, "weight_hh_l0");
    layout_add(lister, 2, "bias_ih_l0");
    layout_add(lister, 2, "bias_hh_l0")->role = TR_LAYOUT_ADDEND;
}

static void list_gru(struct layout_lister *lister)
{
    add_matrix(lister, 0, "weight_ih_l0");
    add_matrix(lister, 1, "weight_hh_l0");
    layout_add(lister, 2, "bias_ih_l0");
    layout_add(lister, 3, "bias_hh_l0");
}

/* Each direction as the layer itself, the second with "_reverse" after the names. */
static void list_bidirectional(struct layout_lister *lister)
{
    static const char *const names[][4] = {
        {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"},
        {"weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse"}};
    int parameters = lister->layer->parameter_count / 2;
    for (int i = 0; i < 2; i++) {
        int first = i * parameters;
        add_matrix(lister, first, names[i][0]);
        add_matrix(lister, first + 1, names[i][1]);
        layout_add(lister, first + 2, names[i][2]);
        if (parameters == 4)
            layout_add(lister, first + 3, names[i][3]);
        else
            layout_add(lister, first + 2, names[i][3])->role = TR_LAYOUT_ADDEND;
    }
}

static void list_conv1d(struct layout_lister *lister)
{
    struct tr_layout_tensor *tensor = layout_add(lister, 0, "weight");
    int64_t kernel = tensor->shape[0], in = tensor->shape[1], out = tensor->shape[2];
    set_shape(tensor, 3, (const int64_t[]){out, in, kernel});
    set_axes(tensor, 3, (const int64_t[][2]){{out, 1}, {in, out}, {kernel, in * out}});
    if (lister->layer->parameter_count > 1) layout_add(lister, 1, "bias");
}

static void list_batch_norm(struct layout_lister *lister)
{
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++) {
        /* One number for each channel of an image, or for each input of a vector. */
        if (lister->layer->in[0].rank == 3)
            layout_add(lister, i, names[i]);
        else
            add_vector(lister, i, names[i]);
    }
    struct tr_layout_tensor *steps = layout_add(lister, 0, "num_batches_tracked");
    steps->role = TR_LAYOUT_STEPS;
    steps->dtype = TR_DTYPE_I64;
    steps->rank = steps->axes = 0;
}

/* One number for each channel. */
static void list_group_norm(struct layout_lister *lister)
{
    layout_add(lister, 0, "weight");
    layout_add(lister, 1, "bias");
}

static void list_layer_norm(struct layout_lister *lister)
{
    if (*(const int32_t *)tr_layer_option(lister->layer, "per") != 0) { /* of pixels: one for each channel */
        list_group_norm(lister);
        return;
    }
    add_vector(lister, 0, "weight");
    add_vector(lister, 1, "bias");
}

static void list_rms_norm(struct layout_lister *lister)
{
    add_vector(lister, 0, "weight");
}

/* clang-format off */
/* The classes that the layout knows. */
static const struct rule {
    const char *class;
    bool keeps_order; /* the output has the order of the input */
    void (*list)(struct layout_lister *lister);
} rules[] = {
    {"add", true, NULL},
    {"attention", false, list_attention},
    {"average_pool", true, NULL},
    {"batch_norm", true, list_batch_norm},
    {"bidirectional", false, list_bidirectional},
    {"columns", false, NULL},
    {"concat", true, NULL},
    {"conv", true, list_conv},
    {"conv1d", false, list_conv1d},
    {"conv_transpose", true, list_conv},
    {"cross_attention", false, list_cross_attention},
    {"dense", false, list_dense},
    {"dropout", true, NULL},
    {"embedding", false, list_embedding},
    {"flatten", true, NULL},
    {"gelu", true, NULL},
    {"global_average_pool", false, NULL},
    {"global_max_pool", false, NULL},
    {"group_norm", true, list_group_norm},
    {"gru", false, list_gru},
    {"hard_swish", true, NULL},
    {"instance_norm", true, list_group_norm},
    {"first", true, NULL},
    {"last", true, NULL},
    {"layer_norm", true, list_layer_norm},
    {"leaky_relu", true, NULL},
    {"lstm", false, list_lstm},
    {"max_pool", true, NULL},
    {"multiply", true, NULL},
    {"position", true, list_embedding},
    {"relu", true, NULL},
    {"relu6", true, NULL},
    {"reshape", false, NULL},
    {"rms_norm", true, list_rms_norm},
    {"sigmoid", true, NULL},
    {"silu", true, NULL},
    {"slice", false, NULL},
    {"softmax", true, NULL},
    {"stochastic_depth", true, NULL},
    {"tanh", true, NULL},
    {"tokens", false, NULL},
    {"unembedding", false, NULL},
    {"upsample", true, NULL},
};
/* clang-format on */

/* NULL with a message where there is none. */
static const struct rule *find_rule(const struct tr_layer *layer)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].class, layer->class->name) == 0) return &rules[i];
    tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\": %s has no counterpart in PyTorch; use the layout trireme",
            layer->where, layer->name, layer->class->name);
    return NULL;
}

/* ---- orders ---- */

static struct tr_shape order_of_input(const struct tr_layer *layer, int k, const struct tr_shape *order)
{
    const struct tr_shape *in = &layer->in[k];
    if (in->rank == 3) {
        bool same = in->size[2] == 1 || in->size[0] * in->size[1] == 1;
        return same ? no_order : *in;
    }
    return layer->input[k] < 0 ? no_order : order[layer->input[k]];
}

tr_status tr_layout_orders(const struct tr_model *model, struct tr_shape *order)
{
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        const struct rule *rule = find_rule(layer);
        if (!rule) return TR_EUNSUPPORTED;
        order[i] = rule->keeps_order ? order_of_input(layer, 0, order) : no_order;
        bool picks = strcmp(layer->class->name, "reshape") == 0 || strcmp(layer->class->name, "slice") == 0 ||
                     (strcmp(layer->class->name, "group_norm") == 0 && layer->in[0].rank != 3);
        if (picks && order_of_input(layer, 0, order).rank != 0)
            return tr_fail(
                TR_EUNSUPPORTED,
                "%s: layer \"%s\" takes a vector that was an image apart, whose numbers stand in another "
                "order channels first; use the layout trireme",
                layer->where, layer->name);
        bool joins = strcmp(layer->class->name, "concat") == 0;
        for (int k = 0; k < layer->input_count && layer->input_count > 1; k++) {
            struct tr_shape other = order_of_input(layer, k, order);
            /* A flattened image within a longer vector has its own order there, and factors of channels
               are in the order of these. */
            const bool image = layer->out.rank == 3, factors = image && layer->in[k].rank == 1;
            if (image && !factors) continue;
            if (joins || factors ? other.rank == 0 : tr_shape_equal(&order[i], &other)) continue;
            const bool products = strcmp(layer->class->name, "multiply") == 0;
            return tr_fail(
                TR_EUNSUPPORTED,
                "%s: layer \"%s\" %s vectors of which one was an image, and channels first they do not "
                "match; use the layout trireme",
                layer->where, layer->name,
                joins      ? "joins"
                : products ? "multiplies"
                           : "adds");
        }
    }
    return TR_OK;
}

/* ---- lists ---- */

tr_status layout_list_torch(struct layout_lister *lister)
{
    const struct tr_model *model = lister->model;
    struct tr_shape *order = tr_alloc((size_t)model->layer_count, sizeof *order);
    tr_status status = order ? tr_layout_orders(model, order) : TR_ENOMEM;
    for (int i = 0; i < model->layer_count && status == TR_OK; i++) {
        const struct rule *rule = find_rule(&model->layers[i]); /* exists: the orders have checked it */
        lister->layer = &model->layers[i];
        lister->order = order_of_input(lister->layer, 0, order);
        if (rule->list && lister->layer->sharer_of == 0) rule->list(lister);
    }
    tr_free(order);
    return status;
}
