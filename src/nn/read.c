#include "nn/read.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "nn/adapters.h"
#include "nn/layers/table.h"
#include "nn/options.h"

#include <stdio.h>
#include <string.h>

#define LAYER_LIMIT 4096
/* A named input is a slice of the whole input, reshaped for an image. */
#define PART_LAYERS (2 * TR_MODEL_PARTS + 1)

static int find_layer(const struct tr_model *model, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (strcmp(model->layers[i].name, name) == 0) return i;
    return -1;
}

static tr_status name_layer(struct tr_model *model, struct tr_layer *layer, const tr_config *item)
{
    int number = (int)(layer - model->layers);
    const char *given = tr_layer_common(layer)->name;
    if (given) {
        if (strlen(given) >= TR_NAME_SIZE || given[strcspn(given, "./ \t\n\"")])
            return tr_config_fail(
                TR_EINVAL, item,
                "layer name \"%s\" must have fewer than %d characters, none of them . / or blank", given,
                TR_NAME_SIZE);
        snprintf(layer->name, sizeof layer->name, "%s", given);
    } else {
        int same = 1;
        for (int i = model->part_layers + model->entry_layers; i < number; i++)
            same += model->layers[i].class == layer->class;
        snprintf(layer->name, sizeof layer->name, "%s%d", layer->class->name, same);
    }
    if (find_layer(model, number, layer->name) >= 0)
        return tr_config_fail(TR_EINVAL, item, "two layers are called \"%s\"; give one another name",
                              layer->name);
    return TR_OK;
}

static void pace_layer(struct tr_layer *layer, const tr_config *node)
{
    const struct tr_layer_common *common = tr_layer_common(layer);
    layer->pace = (struct tr_pace){common->frozen, common->rate_factor, common->decay_factor};
    static const char *const keys[] = {"frozen", "rate_factor", "decay_factor"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        layer->paced |= tr_config_get(node, keys[i]) != NULL;
}

/* The layer of this name, -1 for the network's input. */
static tr_status find_input(const struct tr_model *model, int number, const char *name, const tr_config *item,
                            int *out)
{
    const bool text = model->text_part[0] && strcmp(name, model->text_part) == 0,
               whole = strcmp(name, TR_LAYER_NETWORK_INPUT) == 0 && model->part_layers == 0;
    *out = find_layer(model, number, name);
    if (*out >= 0 || whole || text) return TR_OK;
    const char *names[LAYER_LIMIT + PART_LAYERS + 1];
    for (int i = 0; i < number; i++) names[i] = model->layers[i].name;
    names[number] = model->text_part[0] ? model->text_part : TR_LAYER_NETWORK_INPUT;
    const char *nearest =
        tr_text_nearest(name, names, number + (model->part_layers == 0 || model->text_part[0]));
    return tr_config_fail(TR_EINVAL, item,
                          "there is no layer \"%s\" before this one; name an earlier layer%s%s%s%s", name,
                          model->part_layers > 0 ? ", or a source of the data" : "",
                          nearest ? ". Did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static tr_status add_inputs(struct tr_model *model, struct tr_layer *layer,
                            const struct tr_string_list *names, const tr_config *item)
{
    int number = (int)(layer - model->layers);
    for (int32_t i = 0; i < names->count; i++) {
        if (layer->input_count == TR_LAYER_INPUTS)
            return tr_config_fail(TR_EINVAL, item, "a layer takes at most %d inputs", TR_LAYER_INPUTS);
        TR_TRY(find_input(model, number, names->item[i], item, &layer->input[layer->input_count]));
        layer->input_count++;
    }
    return TR_OK;
}

/* The inputs are those of `from`, else the layer before, with those of `with` after it where a class takes
   several. */
static tr_status connect(struct tr_model *model, struct tr_layer *layer, const tr_config *item)
{
    const struct tr_layer_class *class = layer->class;
    const struct tr_string_list *from = &tr_layer_common(layer)->from;
    if (class->inputs < 1 || class->inputs > TR_LAYER_INPUTS)
        return tr_config_fail(TR_EINVAL, item, "layers take 1 to %d inputs, \"%s\" wants %d; see nn/layer.h",
                              TR_LAYER_INPUTS, class->name, class->inputs);
    const struct tr_string_list *with = class->inputs > 1 ? tr_layer_option(layer, TR_LAYER_WITH) : NULL;
    if (from->count > 0 && with && with->count > 0)
        return tr_config_fail(TR_EINVAL, item,
                              "give either from (all inputs) or with (those beside the layer before)");
    if (from->count > 0) {
        TR_TRY(add_inputs(model, layer, from, item));
    } else {
        if (model->part_layers > 0 && layer - model->layers == model->part_layers)
            return tr_config_fail(TR_EINVAL, item,
                                  "the data have several inputs, and there is no layer before; name the one "
                                  "that it takes, \"from: %s\" for instance",
                                  model->layers[model->part_layers - 1].name);
        layer->input[layer->input_count++] = (int)(layer - model->layers) - 1;
        if (with) TR_TRY(add_inputs(model, layer, with, item));
    }
    if (class->inputs == 1 && layer->input_count > 1)
        return tr_config_fail(TR_EINVAL, item,
                              "%s takes one input, from names %d; join them by add or concat first",
                              class->name, layer->input_count);
    if (layer->input_count < class->inputs)
        return tr_config_fail(
            TR_EINVAL, item,
            "%s takes %d inputs or more and has %d; give with (layers beside the one before) or "
            "from (all of them)",
            class->name, class->inputs, layer->input_count);
    for (int k = 0; k < layer->input_count; k++)
        layer->in[k] = layer->input[k] < 0 ? model->input : model->layers[layer->input[k]].out;
    return TR_OK;
}

tr_status tr_layers_begin(struct tr_model *model, const tr_config *root, const tr_config **items)
{
    const tr_config *list = *items = tr_config_get(root, "layers");
    if (!list || tr_config_kind(list) != TR_CONFIG_SEQUENCE || tr_config_count(list) == 0)
        return tr_config_fail(TR_EINVAL, list ? list : root,
                              "a model needs `layers:`, a list with at least one layer");
    int32_t count = tr_config_count(list);
    if (count > LAYER_LIMIT)
        return tr_config_fail(TR_EINVAL, list, "%d layers; at most %d are allowed", count, LAYER_LIMIT);
    model->layers = tr_alloc_zero((size_t)count + PART_LAYERS, sizeof *model->layers);
    return model->layers ? TR_OK : TR_ENOMEM;
}

tr_status tr_layer_read_part(struct tr_model *model, const struct tr_registry *layers, const char *text,
                             struct tr_layer **out)
{
    tr_config *item;
    TR_TRY(tr_config_parse(text, strlen(text), "data", &item));
    tr_status status = tr_layer_read(model, layers, item, out);
    snprintf((*out)->where, sizeof(*out)->where, "data");
    tr_config_destroy(&item);
    return status;
}

tr_status tr_layer_read(struct tr_model *model, const struct tr_registry *layers, const tr_config *item,
                        struct tr_layer **out)
{
    struct tr_layer *layer = *out = &model->layers[model->layer_count];
    const struct tr_entry *entry;
    const tr_config *node;
    TR_TRY(tr_registry_choose(layers, item, &entry, &node));
    layer->class = tr_layer_class_of(entry);
    layer->tie.lender = -1;
    tr_config_location(item, layer->where, sizeof layer->where);
    model->layer_count++; /* in the model, so that tr_model_destroy() releases it */
    TR_TRY(tr_layer_read_options(layer, node));
    TR_TRY(name_layer(model, layer, item));
    pace_layer(layer, node);
    return connect(model, layer, item);
}

/* ---- without shapes ---- */

/* All sections within a layer's options are initializers. */
static tr_status check_initializers(const struct tr_layer *layer)
{
    const struct tr_layer_class *class = layer->class;
    for (int32_t i = 0; i < class->option_count; i++) {
        struct tr_initializer ignored;
        const tr_config *const *node = tr_layer_option(layer, class->options[i].key);
        if (class->options[i].type == TR_OPTION_NODE && *node)
            TR_TRY(tr_initializer_read(*node, class->options[i].fallback, &ignored));
    }
    return TR_OK;
}

/* Represents a named input whose shape is not known. */
static tr_status add_part_name(struct tr_model *model, const char *name)
{
    struct tr_layer *layer;
    char *text = tr_format("{slice: {name: \"%s\", from: input, begin: 0, size: 1}}", name);
    if (!text) return TR_ENOMEM;
    tr_status status = tr_layer_read_part(model, &tr_layer_classes, text, &layer);
    tr_free(text);
    return status;
}

static tr_status check_layers(struct tr_model *model, const tr_config *root,
                              const struct tr_model_input *input)
{
    const tr_config *list;
    TR_TRY(tr_layers_begin(model, root, &list));
    for (int i = 0; i < input->part_count; i++) TR_TRY(add_part_name(model, input->part[i].name));
    if (input->second_text && input->second_text[0]) TR_TRY(add_part_name(model, input->second_text));
    if (input->text_part) snprintf(model->text_part, sizeof model->text_part, "%s", input->text_part);
    model->part_layers = model->layer_count;
    for (int32_t i = 0; i < tr_config_count(list); i++) {
        struct tr_layer *layer;
        TR_TRY(tr_layer_read(model, &tr_layer_classes, tr_config_at(list, i), &layer));
        TR_TRY(check_initializers(layer));
    }
    struct tr_adapters adapters;
    bool adapted;
    TR_TRY(tr_adapters_read(root, &adapters, &adapted));
    tr_status status = adapted ? tr_adapters_check(&adapters, model) : TR_OK;
    if (adapted) tr_adapters_release(&adapters);
    return status == TR_OK ? tr_loss_read(tr_config_get(root, "loss"), &model->loss) : status;
}

tr_status tr_model_check(const tr_config *root, const struct tr_model_input *input)
{
    struct tr_model *model = tr_alloc_zero(1, sizeof *model);
    if (!model) return TR_ENOMEM;
    tr_status status = check_layers(model, root, input);
    tr_model_destroy(&model);
    return status;
}
