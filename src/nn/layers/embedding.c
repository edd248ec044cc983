/* embedding: a learned vector for every token of the vocabulary. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    int64_t width, vocabulary;
    const tr_config *weights;
};

static const struct tr_option table[] = {
    {"width", TR_OPTION_INT64, offsetof(struct options, width), NULL, 1, 1 << 20, NULL, "size of a vector"},
    {"vocabulary", TR_OPTION_INT64, offsetof(struct options, vocabulary), "0", 0, 1 << 28, NULL,
     "number of vectors; 0: as many as the data have words"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "{uniform: 0.05}", 0, 0, NULL,
     "initializer of the vectors"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    if (!layer->in[0].sequence || layer->in[0].rank != 0)
        return tr_fail(TR_EINVAL, "wants tokens, its input is %s; it must be the first layer of a text model",
                       tr_shape_text(&layer->in[0], text));
    int64_t known = tr_builder_vocabulary(builder);
    if (options->vocabulary == 0) options->vocabulary = known;
    if (options->vocabulary == 0)
        return tr_fail(TR_EINVAL, "the size of the vocabulary is not known; give vocabulary, or text data");
    if (options->vocabulary < known)
        return tr_fail(TR_EINVAL,
                       "vocabulary is %lld, the data have %lld words; raise it or lower the data's max_words",
                       (long long)options->vocabulary, (long long)known);
    layer->out = (struct tr_shape){1, {options->width}, true};
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, sizeof(int32_t),
                                              (options->vocabulary + 1) * (int64_t)sizeof(int32_t), true});
    struct tr_initializer weights;
    TR_TRY(tr_initializer_read(options->weights, "{uniform: 0.05}", &weights));
    struct tr_shape shape = {2, {options->vocabulary, options->width}, false};
    return tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT, shape, &weights,
                                options->vocabulary, options->width);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_embedding_forward op = {
        call->rows, options->vocabulary, options->width, call->token, call->parameter[0], call->y,
    };
    return tr_device_embedding_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_embedding_backward op = {
        .vocabulary = options->vocabulary,
        .width = options->width,
        .token = call->token,
        .dy = call->dy,
        .dtable = call->gradient[0],
        .workspace = call->buffer[0],
        .cut = *call->cut,
    };
    return tr_device_embedding_backward(call->device, &op);
}

const struct tr_layer_class tr_layer_embedding = {
    .name = "embedding",
    .help = "a learned vector for each token",
    TR_LAYER_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
