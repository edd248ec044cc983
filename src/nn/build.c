/* Building a model from its file: layers in order, each checked against the shapes of its inputs. */
#include "base/alloc.h"
#include "base/fail.h"
#include "nn/adapters.h"
#include "nn/layers/columns.h"
#include "nn/model.h"
#include "nn/options.h"
#include "nn/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tr_builder {
    struct tr_model *model;
    const struct tr_registry *layers;
    const struct tr_adapters *adapters; /* or NULL */
    bool whole;                         /* the base is in the arena */
    bool adapts;                        /* parameters being declared belong to adapters */
};

void tr_builder_tokens(struct tr_builder *builder, struct tr_layer *layer, int64_t tokens)
{
    struct tr_model *model = builder->model;
    layer->tokens_out = tokens;
    if (tokens > model->image_tokens) model->image_tokens = tokens;
}

int64_t tr_builder_vocabulary(const struct tr_builder *builder, const struct tr_layer *layer)
{
    const struct tr_model *model = builder->model;
    const struct tr_layer *before = layer->input[0] < 0 ? NULL : &model->layers[layer->input[0]];
    const int64_t *known = before && before->fed ? tr_layer_option(before, "vocabulary") : NULL;
    return known ? *known : model->vocabulary;
}

const char *tr_builder_input(const struct tr_builder *builder, const struct tr_layer *layer, int k)
{
    const struct tr_model *model = builder->model;
    if (layer->input[k] >= 0) return model->layers[layer->input[k]].name;
    return model->text_part[0] ? model->text_part : TR_LAYER_NETWORK_INPUT;
}

void tr_layer_buffer(struct tr_layer *layer, struct tr_buffer buffer)
{
    if (layer->buffer_count < TR_LAYER_BUFFERS) layer->buffer[layer->buffer_count] = buffer;
    layer->buffer_count++;
}

static tr_status check_buffers(const struct tr_layer *layer)
{
    if (layer->buffer_count <= TR_LAYER_BUFFERS) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "needs %d buffers, a layer has at most %d; raise TR_LAYER_BUFFERS in nn/layer.h",
                   layer->buffer_count, TR_LAYER_BUFFERS);
}

/* The layer with this name among those before `layer`. */
static struct tr_layer *find_before(const struct tr_model *model, const struct tr_layer *layer,
                                    const char *name)
{
    for (struct tr_layer *other = model->layers; other < layer; other++)
        if (strcmp(other->name, name) == 0) return other;
    return NULL;
}

tr_status tr_builder_tie(struct tr_builder *builder, struct tr_layer *layer, const char *name,
                         const struct tr_layer **lender)
{
    struct tr_model *model = builder->model;
    struct tr_layer *other = find_before(model, layer, name);
    if (!other) return tr_fail(TR_EINVAL, "there is no layer \"%s\" before it; name an embedding", name);
    if (!other->class->lends)
        return tr_fail(TR_EINVAL,
                       "layer \"%s\" is of kind %s, whose weights cannot be shared; name an embedding", name,
                       other->class->name);
    if (other->tie.buffer || other->shared || other->sharer_of > 0)
        return tr_fail(TR_EINVAL, "another layer shares the weights of \"%s\" already", name);
    layer->tie.lender = (int)(other - model->layers);
    *lender = other;
    if (tr_layer_is_base(other)) return TR_OK; /* nothing is learned, so it needs no gradient */
    int64_t bytes = model->parameters[other->parameter[0]].count * (int64_t)sizeof(float);
    other->tie.buffer = other->buffer_count;
    tr_layer_buffer(other,
                    (struct tr_buffer){TR_PER_MICROBATCH, bytes, 0, true, (int)(layer - model->layers)});
    tr_layer_buffer(other, (struct tr_buffer){TR_PER_MICROBATCH, 0, bytes, true, 0});
    return check_buffers(other);
}

/* Whether a parameter being declared belongs to the frozen base. */
static bool is_of_base(const struct tr_builder *builder, const struct tr_layer *layer)
{
    return builder->adapters && !builder->adapts && !tr_adapters_train(builder->adapters, layer);
}

static int64_t round_up(int64_t count)
{
    return (count + TR_MODEL_GRAIN - 1) / TR_MODEL_GRAIN * TR_MODEL_GRAIN;
}

/* Notes the number of a parameter that was added, to the base or to the learned parameters. */
static void add_slot(struct tr_layer *layer, int slot)
{
    layer->slot[layer->slot_count++] = slot;
    if (slot >= 0) layer->parameter[layer->parameter_count++] = slot;
}

static tr_status add_parameter(struct tr_model *model, struct tr_layer *layer, bool apart,
                               const struct tr_parameter *parameter)
{
    struct tr_parameter **list = apart ? &model->base : &model->parameters;
    int *count = apart ? &model->base_count : &model->parameter_count;
    int64_t *floats = apart ? &model->base_floats : &model->arena_floats;
    if (!tr_grow(list, *count, sizeof **list)) return TR_ENOMEM;
    (*list)[*count] = *parameter;
    (*list)[*count].offset = *floats;
    *floats += round_up(parameter->count);
    if (!apart && parameter->kind != TR_PARAMETER_STATISTIC) model->parameter_total += parameter->count;
    add_slot(layer, apart ? -1 - *count : *count);
    ++*count;
    return TR_OK;
}

/* Takes the next parameter of a layer that shares those of another. */
static tr_status share_parameter(const struct tr_model *model, struct tr_layer *layer, const char *name,
                                 enum tr_parameter_kind kind, const struct tr_shape *shape)
{
    const struct tr_layer *other = &model->layers[layer->sharer_of - 1];
    const int k = layer->slot_count;
    char ours[TR_SHAPE_TEXT], theirs[TR_SHAPE_TEXT];
    if (kind == TR_PARAMETER_STATISTIC)
        return tr_fail(TR_EINVAL,
                       "has running statistics, which follow the data of one layer; leave out `share`");
    if (k >= other->slot_count)
        return tr_fail(TR_EINVAL, "has a parameter \"%s\" that \"%s\" lacks; give both the same options",
                       name, other->name);
    const struct tr_parameter *parameter = tr_model_slot(model, other->slot[k]);
    if (strcmp(parameter->name + strlen(other->name) + 1, name) != 0)
        return tr_fail(TR_EINVAL, "has \"%s\" where \"%s\" has \"%s\"; give both the same options", name,
                       other->name, parameter->name + strlen(other->name) + 1);
    if (!tr_shape_equal(&parameter->shape, shape))
        return tr_fail(
            TR_EINVAL,
            "its \"%s\" are %s, those of \"%s\" are %s; layers that share parameters take inputs of one size",
            name, tr_shape_text(shape, ours), other->name, tr_shape_text(&parameter->shape, theirs));
    layer->slot[layer->slot_count++] = other->slot[k];
    return TR_OK;
}

tr_status tr_builder_parameter(struct tr_builder *builder, struct tr_layer *layer, const char *name,
                               enum tr_parameter_kind kind, struct tr_shape shape,
                               const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out)
{
    if (layer->sharer_of > 0) return share_parameter(builder->model, layer, name, kind, &shape);
    if (layer->slot_count == TR_LAYER_PARAMETERS)
        return tr_fail(TR_EINVAL,
                       "needs more than %d parameters (\"%s\" is one too many); raise TR_LAYER_PARAMETERS in "
                       "nn/layer.h",
                       TR_LAYER_PARAMETERS, name);
    TR_TRY(tr_shape_check(&shape, name));
    const bool base = is_of_base(builder, layer);
    struct tr_parameter parameter = {
        .kind = kind,
        .shape = shape,
        .initializer = *initializer,
        .pace = layer->pace,
        .base = base,
        .fan_in = fan_in,
        .fan_out = fan_out,
        .count = tr_shape_count(&shape),
    };
    if (kind == TR_PARAMETER_STATISTIC || builder->adapts) parameter.pace.frozen = false;
    if (base) parameter.pace.frozen = true;
    if (base && kind == TR_PARAMETER_STATISTIC)
        return tr_fail(TR_EUNSUPPORTED, "has running statistics, which follow the data, but the base of "
                                        "adapters must not change; name it in adapters.train");
    snprintf(parameter.name, sizeof parameter.name, "%s.%s", layer->name, name);
    return add_parameter(builder->model, layer, base && !builder->whole, &parameter);
}

const struct tr_parameter *tr_builder_parameter_at(const struct tr_builder *builder,
                                                   const struct tr_layer *layer, int k)
{
    return tr_model_slot(builder->model, layer->slot[k]);
}

/* ---- layers ---- */

/* Whether backward of a layer whose class skips gradients reads its input nevertheless. */
static bool learns_from_input(const struct tr_layer *layer)
{
    if (!layer->class->skips_gradients || !tr_layer_is_base(layer)) return true;
    for (int k = 0; k < layer->adapters.count; k++)
        if (layer->adapters.item[k].beside.weights == 0) return true;
    return false;
}

static tr_status adapt(struct tr_layer *layer, struct tr_builder *builder)
{
    if (!builder->adapters) return TR_OK;
    builder->adapts = true;
    tr_status status = tr_adapters_add(builder->adapters, layer, builder);
    builder->adapts = false;
    if (!learns_from_input(layer)) layer->keeps_input = false;
    return status;
}

/* Finds the layer whose parameters it shares: the first layer that has them. */
static tr_status find_shared(struct tr_builder *builder, struct tr_layer *layer)
{
    const char *name = tr_layer_common(layer)->share;
    struct tr_model *model = builder->model;
    if (!name || !*name) return TR_OK;
    struct tr_layer *other = find_before(model, layer, name);
    if (other && other->sharer_of > 0) other = &model->layers[other->sharer_of - 1];
    if (!other)
        return tr_fail(TR_EINVAL, "there is no layer \"%s\" before it whose parameters it could share", name);
    if (other->class != layer->class)
        return tr_fail(TR_EINVAL, "shares the parameters of \"%s\", which is of kind %s and not %s", name,
                       other->class->name, layer->class->name);
    if (builder->adapters)
        return tr_fail(
            TR_EUNSUPPORTED,
            "shares parameters, and shared parameters cannot have adapters; leave out one of the two");
    if (other->tie.buffer)
        return tr_fail(TR_EINVAL, "\"%s\" shares its weights with an unembedding already", name);
    if (layer->paced)
        return tr_fail(TR_EINVAL,
                       "shares its parameters, so `frozen`, `rate_factor` and `decay_factor` have no effect "
                       "here; give them to \"%s\"",
                       other->name);
    layer->sharer_of = 1 + (int)(other - model->layers);
    other->shared = true;
    return TR_OK;
}

/* Checks that exactly the shared parameters were declared. */
static tr_status check_shared(const struct tr_model *model, const struct tr_layer *layer)
{
    if (layer->sharer_of == 0) return TR_OK;
    const struct tr_layer *other = &model->layers[layer->sharer_of - 1];
    if (other->slot_count == 0)
        return tr_fail(TR_EINVAL, "shares the parameters of \"%s\", which has none; leave out `share`",
                       other->name);
    if (layer->parameter_count > 0)
        return tr_fail(TR_EINVAL, "is of kind %s, which cannot share parameters; leave out `share`",
                       layer->class->name);
    if (layer->slot_count == other->slot_count) return TR_OK;
    return tr_fail(TR_EINVAL, "has %d parameters, \"%s\" has %d; give both the same options",
                   layer->slot_count, other->name, other->slot_count);
}

/* Takes the number of tokens from the inputs; it must be the same in all of them. */
static tr_status take_tokens(struct tr_builder *builder, struct tr_layer *layer)
{
    int first = -1;
    for (int k = 0; k < layer->input_count; k++) {
        if (!layer->in[k].sequence) continue;
        const int64_t tokens = layer->input[k] < 0 ? 0 : builder->model->layers[layer->input[k]].tokens_out;
        if (k == 1 && layer->class->two_lengths) {
            layer->tokens_memory = tokens;
            continue;
        }
        if (first >= 0 && tokens != layer->tokens_in && (tokens < 0 || layer->tokens_in < 0))
            return tr_fail(
                TR_EINVAL,
                "takes \"%s\" and \"%s\", which follow from two texts of different lengths; let one "
                "attend to the other by cross_attention",
                tr_builder_input(builder, layer, first), tr_builder_input(builder, layer, k));
        if (first >= 0 && tokens != layer->tokens_in)
            return tr_fail(TR_EINVAL,
                           "takes sequences of %" PRId64 " tokens from \"%s\" and of %" PRId64
                           " from \"%s\"; give it as many of both",
                           layer->tokens_in, tr_builder_input(builder, layer, first), tokens,
                           tr_builder_input(builder, layer, k));
        if (first < 0) first = k;
        layer->tokens_in = tokens;
    }
    return TR_OK;
}

/* Tokens are numbers of words, with which only few classes can do anything. */
static tr_status check_tokens(const struct tr_builder *builder, const struct tr_layer *layer)
{
    for (int k = 0; k < layer->input_count && !layer->class->takes_tokens; k++)
        if (layer->in[k].sequence && layer->in[k].rank == 0)
            return tr_fail(TR_EINVAL,
                           "cannot take the tokens of \"%s\"; give them vectors by an embedding first",
                           tr_builder_input(builder, layer, k));
    return TR_OK;
}

/* Calls the class's build function; unless the class sets another number, the output has as many tokens as
   the input. */
static tr_status call_class(struct tr_builder *builder, struct tr_layer *layer)
{
    TR_TRY(check_tokens(builder, layer));
    TR_TRY(take_tokens(builder, layer));
    TR_TRY(layer->class->build(layer, builder));
    if (layer->out.sequence && layer->tokens_out == 0) layer->tokens_out = layer->tokens_in;
    return TR_OK;
}

static tr_status build_layer(struct tr_builder *builder, const tr_config *item)
{
    struct tr_layer *layer;
    TR_TRY(tr_layer_read(builder->model, builder->layers, item, &layer));
    tr_status status = find_shared(builder, layer);
    if (status == TR_OK) status = call_class(builder, layer);
    if (status == TR_OK) status = check_shared(builder->model, layer);
    layer->own_slots = layer->slot_count;
    if (status == TR_OK) status = adapt(layer, builder);
    if (status == TR_OK) status = check_buffers(layer);
    if (status == TR_OK) status = tr_shape_check(&layer->out, "output");
    if (status == TR_OK && layer->paced && layer->slot_count == 0)
        status = tr_fail(TR_EINVAL, "has no parameters, so `frozen`, `rate_factor` and `decay_factor` have "
                                    "no effect; leave them out");
    return status == TR_OK ? TR_OK : tr_fail_in(status, "%s: layer \"%s\"", layer->where, layer->name);
}

/* A max pool right after a relu applies the relu's gradient while it passes its own back: one pass over
 * memory less. */
static void fuse_relu_gradients(struct tr_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        struct tr_layer *layer = &model->layers[i];
        if (!layer->class->fusing.applies_relu_gradient) continue;
        int source = tr_model_source(model, layer->input[0]);
        if (source < 0 || !model->layers[source].relu.output || tr_model_consumers(model, source) != 1)
            continue;
        layer->relu.of_input = true;
        model->layers[source].relu.left_to_consumer = true;
        model->layers[source].keeps_output = false;
    }
}

/* Refuses an output that no layer takes: it would be computed for nothing. */
static tr_status check_use(const struct tr_model *model)
{
    for (int i = 0; i + 1 < model->layer_count; i++) {
        bool used = false;
        for (int j = i + 1; j < model->layer_count; j++)
            for (int k = 0; k < model->layers[j].input_count; k++) used |= model->layers[j].input[k] == i;
        const struct tr_layer *layer = &model->layers[i];
        if (!used)
            return tr_fail(TR_EINVAL, "%s: layer \"%s\": no later layer takes its output; name it in from",
                           layer->where, layer->name);
    }
    return TR_OK;
}

/* A layer that gives a named input, or a step on the way to it. */
static tr_status build_part_layer_of(struct tr_builder *builder, const struct tr_registry *layers, char *text)
{
    struct tr_layer *layer;
    if (!text) return TR_ENOMEM;
    tr_status status = tr_layer_read_part(builder->model, layers, text, &layer);
    tr_free(text);
    if (status == TR_OK) status = call_class(builder, layer);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "input");
}

static tr_status build_part_layer(struct tr_builder *builder, char *text)
{
    return build_part_layer_of(builder, &tr_layer_classes, text);
}

#define COLUMNS                                                                                              \
    "input_columns" /* the layer that has all numbers beside a text, where they have several names */

/* Vectors beside a text: one layer for all, which comes from outside, and slices of it. */
static tr_status build_columns(struct tr_builder *builder, const struct tr_model_input *input)
{
    int64_t all = 0, begin = 0;
    for (int i = 0; i < input->part_count; i++) all += tr_shape_count(&input->part[i].shape);
    TR_TRY(build_part_layer_of(builder, &tr_layer_columns,
                               tr_format("{columns: {name: \"%s\", from: input, size: %" PRId64 "}}",
                                         input->part_count == 1 ? input->part[0].name : COLUMNS, all)));
    for (int i = 0; i < input->part_count && input->part_count > 1; i++) {
        const int64_t size = tr_shape_count(&input->part[i].shape);
        TR_TRY(build_part_layer(builder, tr_format("{slice: {name: \"%s\", from: " COLUMNS ", begin: %" PRId64
                                                   ", size: %" PRId64 "}}",
                                                   input->part[i].name, begin, size)));
        begin += size;
    }
    return TR_OK;
}

/* A text, and what is beside it: another text, vectors. */
static tr_status build_beside_text(struct tr_builder *builder, const struct tr_model_input *input)
{
    struct tr_model *model = builder->model;
    snprintf(model->text_part, sizeof model->text_part, "%s", input->text_part);
    if (input->second_text && input->second_text[0]) {
        snprintf(model->second_text, sizeof model->second_text, "%s", input->second_text);
        TR_TRY(build_part_layer_of(builder, &tr_layer_columns,
                                   tr_format("{second_text: {name: \"%s\", from: input, vocabulary: %" PRId64
                                             "}}",
                                             input->second_text, input->second_vocabulary)));
    }
    if (input->part_count > 0) TR_TRY(build_columns(builder, input));
    model->part_layers = model->layer_count;
    return TR_OK;
}

/* A named input is a slice of the network's input vector, reshaped if it is an image. */
static tr_status build_parts(struct tr_builder *builder, const struct tr_model_input *input)
{
    struct tr_model *model = builder->model;
    int64_t begin = 0;
    if (input->part_count > TR_MODEL_PARTS)
        return tr_fail(TR_EINVAL, "%d inputs have names, at most %d can have", input->part_count,
                       TR_MODEL_PARTS);
    if (input->text_part && input->text_part[0]) return build_beside_text(builder, input);
    for (int i = 0; i < input->part_count; i++) {
        const struct tr_named_shape *part = &input->part[i];
        bool image = part->shape.rank == 3;
        int64_t size = tr_shape_count(&part->shape);
        TR_TRY(build_part_layer(builder, tr_format("{slice: {name: \"%s%s\", from: input, begin: %" PRId64
                                                   ", size: %" PRId64 "}}",
                                                   part->name, image ? "_row" : "", begin, size)));
        if (image)
            TR_TRY(build_part_layer(builder,
                                    tr_format("{reshape: {name: \"%s\", from: \"%s_row\", shape: [%" PRId64
                                              ", %" PRId64 ", %" PRId64 "]}}",
                                              part->name, part->name, part->shape.size[0],
                                              part->shape.size[1], part->shape.size[2])));
        begin += size;
    }
    model->part_layers = model->layer_count;
    return TR_OK;
}

#define STEPS_ROWS "input_rows" /* the layer that gives each vector a row of an image */

/* A vector as a sequence: nothing is computed, since the numbers already have the layout of a sequence. */
static tr_status build_steps(struct tr_builder *builder, const struct tr_model_input *input)
{
    int64_t numbers = tr_shape_count(&input->shape);
    if (input->steps == 0) return TR_OK;
    if (numbers % input->steps != 0)
        return tr_fail(TR_EINVAL, "%" PRId64 " numbers an example are no %" PRId64 " vectors of one size",
                       numbers, input->steps);
    TR_TRY(build_part_layer(builder, tr_format("{reshape: {name: " STEPS_ROWS
                                               ", from: input, shape: [%" PRId64 ", 1, %" PRId64 "]}}",
                                               input->steps, numbers / input->steps)));
    TR_TRY(build_part_layer(builder,
                            tr_format("{tokens: {name: " TR_LAYER_NETWORK_INPUT ", from: " STEPS_ROWS "}}")));
    builder->model->entry_layers = 2;
    return TR_OK;
}

/* A vector as an image, likewise. */
static tr_status build_image(struct tr_builder *builder, const struct tr_model_input *input)
{
    const int64_t *image = input->image;
    if (image[0] == 0) return TR_OK;
    TR_TRY(
        build_part_layer(builder, tr_format("{reshape: {name: " TR_LAYER_NETWORK_INPUT
                                            ", from: input, shape: [%" PRId64 ", %" PRId64 ", %" PRId64 "]}}",
                                            image[0], image[1], image[2])));
    builder->model->entry_layers = 1;
    return TR_OK;
}

static tr_status build_layers(struct tr_builder *builder, const tr_config *root,
                              const struct tr_model_input *input)
{
    struct tr_model *model = builder->model;
    const tr_config *list;
    TR_TRY(tr_layers_begin(model, root, &list));
    TR_TRY(build_parts(builder, input));
    TR_TRY(build_steps(builder, input));
    TR_TRY(build_image(builder, input));
    int32_t count = tr_config_count(list);
    for (int32_t i = 0; i < count; i++) TR_TRY(build_layer(builder, tr_config_at(list, i)));
    if (tr_model_source(model, model->layer_count - 1) < 0)
        return tr_config_fail(TR_EINVAL, list, "the layers compute nothing; add a dense layer");
    TR_TRY(check_use(model));
    fuse_relu_gradients(model);
    model->output = model->layers[model->layer_count - 1].out;
    return TR_OK;
}

/* Errors of the output are reported at the layer that computes it. */
static tr_status check_loss(struct tr_model *model)
{
    const struct tr_layer *last = &model->layers[model->layer_count - 1];
    /* Numbers that are an image enter as a row. */
    const struct tr_shape *input = model->entry_layers == 1 ? &model->layers[0].out : &model->input;
    tr_status status = tr_loss_settle(&model->loss, input, &model->output);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "%s: layer \"%s\"", last->where, last->name);
}

tr_status tr_model_build(const tr_config *root, const struct tr_model_input *input, struct tr_model **out)
{
    return tr_model_build_of(&tr_layer_classes, root, input, out);
}

static tr_status build_model(struct tr_builder *builder, const tr_config *root,
                             const struct tr_model_input *input)
{
    struct tr_model *model = builder->model;
    TR_TRY(tr_shape_check(&model->input, "input"));
    TR_TRY(build_layers(builder, root, input));
    tr_model_note_hidden(model);
    if (builder->adapters) TR_TRY(tr_adapters_check(builder->adapters, model));
    TR_TRY(tr_loss_read(tr_config_get(root, "loss"), &model->loss));
    return check_loss(model);
}

tr_status tr_model_build_of(const struct tr_registry *layers, const tr_config *root,
                            const struct tr_model_input *input, struct tr_model **out)
{
    struct tr_model *model = tr_alloc_zero(1, sizeof *model);
    if (!model) return TR_ENOMEM;
    model->input = input->shape;
    model->vocabulary = input->vocabulary;
    struct tr_builder builder = {.model = model, .layers = layers, .whole = input->whole};
    struct tr_adapters adapters;
    bool adapted = false;
    tr_status status = tr_adapters_read(root, &adapters, &adapted);
    if (adapted) builder.adapters = &adapters;
    if (status == TR_OK) status = build_model(&builder, root, input);
    if (adapted) tr_adapters_release(&adapters);
    if (status != TR_OK) {
        tr_model_destroy(&model);
        return status;
    }
    *out = model;
    return TR_OK;
}
