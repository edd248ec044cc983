/* Building a model from its file: layers in order, each checked against the shapes before it. */
#include "nn/model.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ARENA_GRAIN 16 /* floats: a cache line, so that no two parameters share one */
#define LAYER_LIMIT 4096

struct tr_builder {
    struct tr_model *model;
};

int64_t tr_builder_vocabulary(const struct tr_builder *builder)
{
    return builder->model->vocabulary;
}

void tr_layer_buffer(struct tr_layer *layer, struct tr_buffer buffer)
{
    layer->buffer[layer->buffer_count++] = buffer;
}

tr_status tr_builder_parameter(struct tr_builder *builder, struct tr_layer *layer, const char *name,
                               enum tr_parameter_kind kind, struct tr_shape shape,
                               const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out)
{
    struct tr_model *model = builder->model;
    if (!tr_grow(&model->parameters, model->parameter_count, sizeof *model->parameters)) return TR_ENOMEM;
    TR_TRY(tr_shape_check(&shape, name));
    struct tr_parameter *parameter = &model->parameters[model->parameter_count];
    *parameter = (struct tr_parameter){
        .kind = kind,
        .shape = shape,
        .initializer = *initializer,
        .fan_in = fan_in,
        .fan_out = fan_out,
        .count = tr_shape_count(&shape),
        .offset = model->arena_floats,
    };
    snprintf(parameter->name, sizeof parameter->name, "%s.%s", layer->name, name);
    model->arena_floats += (parameter->count + ARENA_GRAIN - 1) / ARENA_GRAIN * ARENA_GRAIN;
    model->parameter_total += parameter->count;
    layer->parameter[layer->parameter_count++] = model->parameter_count++;
    return TR_OK;
}

int tr_model_source(const struct tr_model *model, int layer)
{
    while (layer >= 0 && model->layers[layer].alias) layer = model->layers[layer].input[0];
    return layer;
}

int tr_model_consumers(const struct tr_model *model, int source)
{
    int consumers = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count && !layer->alias; k++)
            consumers += tr_model_source(model, layer->input[k]) == source;
    }
    return consumers;
}

/* ---- one layer ---- */

/* The name option is kept behind the class's own struct. */
static size_t name_offset(const struct tr_layer_class *class)
{
    return (class->options_size + sizeof(char *) - 1) / sizeof(char *) * sizeof(char *);
}

/* The class's option table with `name` at the end. Returned, free with tr_free(). */
static struct tr_option *full_table(const struct tr_layer_class *class)
{
    struct tr_option *table = tr_alloc((size_t) class->option_count + 1, sizeof *table);
    if (!table) return NULL;
    if (class->option_count) memcpy(table, class->options, (size_t) class->option_count * sizeof *table);
    table[class->option_count] = (struct tr_option){
        .key = "name",
        .type = TR_OPTION_STRING,
        .offset = name_offset(class),
        .fallback = "",
        .help = "name of the layer",
    };
    return table;
}

/* Needs no memory: it runs when there may be none. */
static void release_options(struct tr_layer *layer)
{
    if (!layer->options) return;
    tr_options_release(layer->class->options, layer->class->option_count, layer->options);
    tr_free(*(char **)((char *)layer->options + name_offset(layer->class)));
    tr_free(layer->options);
}

static tr_status unknown_class(const tr_config *item, const char *name)
{
    int count;
    const struct tr_layer_class *const *classes = tr_layer_classes(&count);
    const char *names[64];
    for (int i = 0; i < count && i < 64; i++) names[i] = classes[i]->name;
    const char *nearest = tr_text_nearest(name, names, count < 64 ? count : 64);
    if (nearest)
        return tr_config_fail(TR_EINVAL, item, "unknown layer \"%s\"; did you mean \"%s\"?", name, nearest);
    return tr_config_fail(TR_EINVAL, item, "unknown layer \"%s\"; `trireme inspect --layers` lists them",
                          name);
}

/* An item of the list is `flatten`, or `conv: {...}`. */
static tr_status find_class(const tr_config *item, const struct tr_layer_class **class,
                            const tr_config **options)
{
    const char *name = tr_config_text(item);
    *options = NULL;
    if (tr_config_kind(item) == TR_CONFIG_MAPPING && tr_config_count(item) == 1) {
        name = tr_config_key(item, 0);
        *options = tr_config_at(item, 0);
    }
    if (!name)
        return tr_config_fail(TR_EINVAL, item,
                              "a layer is written as `relu` or `dense: {units: 10}`, here is %s",
                              tr_config_kind_name(item));
    *class = tr_layer_class_find(name);
    return *class ? TR_OK : unknown_class(item, name);
}

static int find_layer(const struct tr_model *model, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (strcmp(model->layers[i].name, name) == 0) return i;
    return -1;
}

static tr_status name_layer(struct tr_model *model, struct tr_layer *layer, const tr_config *item)
{
    int number = (int)(layer - model->layers);
    const char *given = *(char **)((char *)layer->options + name_offset(layer->class));
    if (given) {
        if (strlen(given) >= TR_NAME_SIZE || given[strcspn(given, "./ \t\n\"")])
            return tr_config_fail(
                TR_EINVAL, item,
                "layer name \"%s\" must have fewer than %d characters, none of them . / or blank", given,
                TR_NAME_SIZE);
        snprintf(layer->name, sizeof layer->name, "%s", given);
    } else {
        int same = 1;
        for (int i = 0; i < number; i++) same += model->layers[i].class == layer->class;
        snprintf(layer->name, sizeof layer->name, "%s%d", layer->class->name, same);
    }
    if (find_layer(model, number, layer->name) >= 0)
        return tr_config_fail(TR_EINVAL, item, "two layers are called \"%s\"; give one another name",
                              layer->name);
    return TR_OK;
}

/* The second input is the value of the option "with". */
static tr_status connect(struct tr_model *model, struct tr_layer *layer, const tr_config *item)
{
    int number = (int)(layer - model->layers);
    layer->input_count = layer->class->inputs;
    layer->input[0] = number - 1;
    if (layer->input_count == 2) {
        const char *with = *(char **)((char *)layer->options + layer->class->options[0].offset);
        layer->input[1] = find_layer(model, number, with);
        if (layer->input[1] < 0)
            return tr_config_fail(TR_EINVAL, item,
                                  "there is no layer \"%s\" before this one; name an earlier layer", with);
    }
    for (int k = 0; k < layer->input_count; k++)
        layer->in[k] = layer->input[k] < 0 ? model->input : model->layers[layer->input[k]].out;
    return TR_OK;
}

static tr_status build_layer(struct tr_builder *builder, const tr_config *item)
{
    struct tr_model *model = builder->model;
    struct tr_layer *layer = &model->layers[model->layer_count];
    const tr_config *node;
    TR_TRY(find_class(item, &layer->class, &node));
    tr_config_location(item, layer->where, sizeof layer->where);
    layer->options = tr_alloc_zero(1, name_offset(layer->class) + sizeof(char *));
    struct tr_option *table = full_table(layer->class);
    if (!layer->options || !table) {
        tr_free(layer->options);
        tr_free(table);
        return TR_ENOMEM;
    }
    model->layer_count++; /* from here on tr_model_destroy() releases it */
    int32_t count = layer->class->option_count + 1;
    tr_status status = tr_options_defaults(table, count, layer->options);
    if (status == TR_OK) status = tr_options_read(table, count, node, layer->class->name, layer->options);
    tr_free(table);
    /* Options that are not there have no place of their own. */
    if (status != TR_OK) return node ? status : tr_fail_in(status, "%s", layer->where);
    TR_TRY(name_layer(model, layer, item));
    TR_TRY(connect(model, layer, item));
    status = layer->class->build(layer, builder);
    if (status == TR_OK) status = tr_shape_check(&layer->out, "output");
    return status == TR_OK ? TR_OK : tr_fail_in(status, "%s: layer \"%s\"", layer->where, layer->name);
}

/* A max pool right behind a relu applies the relu's gradient while it passes its own back: one pass over
 * memory less. */
static void fuse_relu_gradients(struct tr_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        struct tr_layer *layer = &model->layers[i];
        if (!layer->class->applies_relu_gradient) continue;
        int source = tr_model_source(model, layer->input[0]);
        if (source < 0 || !model->layers[source].relu_output || tr_model_consumers(model, source) != 1)
            continue;
        layer->relu_of_input = true;
        model->layers[source].relu_left_to_consumer = true;
        model->layers[source].keeps_output = false;
    }
}

static tr_status build_layers(struct tr_builder *builder, const tr_config *root)
{
    struct tr_model *model = builder->model;
    const tr_config *list = tr_config_get(root, "layers");
    if (!list || tr_config_kind(list) != TR_CONFIG_SEQUENCE || tr_config_count(list) == 0)
        return tr_config_fail(TR_EINVAL, list ? list : root,
                              "a model needs `layers:`, a list with at least one layer");
    int32_t count = tr_config_count(list);
    if (count > LAYER_LIMIT)
        return tr_config_fail(TR_EINVAL, list, "%d layers; at most %d are allowed", count, LAYER_LIMIT);
    model->layers = tr_alloc_zero((size_t)count, sizeof *model->layers);
    if (!model->layers) return TR_ENOMEM;
    for (int32_t i = 0; i < count; i++) TR_TRY(build_layer(builder, tr_config_at(list, i)));
    if (tr_model_source(model, count - 1) < 0)
        return tr_config_fail(TR_EINVAL, list, "the layers compute nothing; add a dense layer");
    fuse_relu_gradients(model);
    model->output = model->layers[count - 1].out;
    return TR_OK;
}

tr_status tr_model_build(const tr_config *root, const struct tr_model_input *input, struct tr_model **out)
{
    struct tr_model *model = tr_alloc_zero(1, sizeof *model);
    if (!model) return TR_ENOMEM;
    model->input = input->shape;
    model->vocabulary = input->vocabulary;
    struct tr_builder builder = {model};
    tr_status status = tr_shape_check(&model->input, "input");
    if (status == TR_OK) status = build_layers(&builder, root);
    if (status == TR_OK) status = tr_loss_read(tr_config_get(root, "loss"), &model->output, &model->loss);
    if (status != TR_OK) {
        tr_model_destroy(&model);
        return status;
    }
    *out = model;
    return TR_OK;
}

void tr_model_destroy(struct tr_model **handle)
{
    struct tr_model *model = *handle;
    if (!model) return;
    for (int i = 0; i < model->layer_count; i++) {
        release_options(&model->layers[i]);
        tr_free(model->layers[i].state);
    }
    tr_free(model->layers);
    tr_free(model->parameters);
    tr_free(model);
    *handle = NULL;
}

void tr_model_initialize_range(const struct tr_model *model, uint64_t seed, int64_t begin, int64_t end,
                               int share, int shares, float *values)
{
    tr_rng_key key = tr_rng_key_make(seed, TR_RNG_INIT);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (parameter->offset < begin || parameter->offset >= end) continue;
        int64_t from = tr_cut(parameter->count, shares, share),
                to = tr_cut(parameter->count, shares, share + 1);
        float *at = values + parameter->offset;
        tr_initializer_fill(&parameter->initializer, parameter->fan_in, parameter->fan_out, key, (uint32_t)i,
                            from, to, at + from);
        if (share == shares - 1)
            for (int64_t k = parameter->count; k % ARENA_GRAIN; k++) at[k] = 0;
    }
}

void tr_model_initialize(const struct tr_model *model, uint64_t seed, int share, int shares, float *values)
{
    tr_model_initialize_range(model, seed, 0, model->arena_floats, share, shares, values);
}

static tr_status feed_hash(const struct tr_model *model, tr_parameter_feed feed, void *user, tr_sha256 *hash)
{
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        char shape[TR_SHAPE_TEXT], line[sizeof parameter->name + TR_SHAPE_TEXT + 2];
        int length =
            snprintf(line, sizeof line, "%s %s\n", parameter->name, tr_shape_text(&parameter->shape, shape));
        tr_sha256_add(hash, line, (size_t)length);
        TR_TRY(feed(user, parameter, hash));
    }
    return TR_OK;
}

tr_status tr_model_hash_fed(const struct tr_model *model, tr_parameter_feed feed, void *user,
                            char hex[TR_SHA256_TEXT])
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = feed_hash(model, feed, user, hash);
    if (status == TR_OK) return tr_sha256_end(&hash, hex);
    tr_sha256_destroy(&hash);
    return status;
}

static tr_status feed_from_arena(void *user, const struct tr_parameter *parameter, tr_sha256 *hash)
{
    const float *values = user;
    tr_sha256_add(hash, values + parameter->offset, (size_t)parameter->count * sizeof *values);
    return TR_OK;
}

tr_status tr_model_hash(const struct tr_model *model, const float *values, char hex[TR_SHA256_TEXT])
{
    return tr_model_hash_fed(model, feed_from_arena, (void *)(uintptr_t)values, hex);
}
