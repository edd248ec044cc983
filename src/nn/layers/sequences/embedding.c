/* embedding: a learned vector for every token of the vocabulary. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

#include "base/numbers/tree.h"

struct options {
    int64_t width, vocabulary;
    const tr_config *weights;
    char *vectors; /* path; the training code reads it */
};

static const struct tr_option table[] = {
    {"width", TR_OPTION_INT64, offsetof(struct options, width), NULL, 1, 1 << 20, NULL, "size of a vector"},
    {"vocabulary", TR_OPTION_INT64, offsetof(struct options, vocabulary), "0", 0, 1 << 28, NULL,
     "number of vectors; 0: the vocabulary of the data"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "{uniform: 0.05}", 0, 0, NULL,
     "initializer of the vectors"},
    {"vectors", TR_OPTION_STRING, offsetof(struct options, vectors), "", 0, 0, NULL,
     "file of initial vectors: a word and its numbers on each line, or an array .npy with a row for each "
     "token"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    if (!layer->in[0].sequence || layer->in[0].rank != 0)
        return tr_fail(TR_EINVAL, "wants tokens, its input is %s; it must be the first layer of a text model",
                       tr_shape_text(&layer->in[0], text));
    int64_t known = tr_builder_vocabulary(builder, layer);
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

/* Computes the leaf of microbatch `m`. */
static tr_status form_leaf(const struct tr_layer_call *call, int32_t m, float *leaf)
{
    const struct options *options = call->layer->options;
    int64_t row[2];
    int32_t bound[2];
    struct tr_op_embedding_backward op = {
        .vocabulary = options->vocabulary,
        .width = options->width,
        .token = call->token + call->cut->row[m],
        .dy = call->dy + call->cut->row[m] * options->width,
        .dtable = leaf,
        .workspace = call->buffer[0],
        .cut = tr_cut_single(call->cut, m, row, bound),
    };
    return tr_device_embedding_backward(call->device, &op);
}

/* Node j. Its leaves are the shared contributions of the layer that shares the vectors plus its own.
   Partial sums of the tree are stored in place of leaves that were used. */
static tr_status form_shared_node(const struct tr_layer_call *call, int32_t j)
{
    const struct options *options = call->layer->options;
    const struct tr_cut *cut = call->cut;
    int64_t count = options->vocabulary * options->width;
    float *leaves = call->buffer[call->layer->tie.buffer], *own = call->buffer[call->layer->tie.buffer + 1];
    float *places = leaves + cut->bound[j] * count, *node = call->gradient[0] + j * cut->stride;
    struct tr_tree_fold fold = {0};
    for (int32_t m = cut->bound[j]; m < cut->bound[j + 1]; m++) {
        bool last = m + 1 == cut->bound[j + 1];
        float *sum = last && fold.waiting == 0 ? node : places + fold.waiting * count;
        TR_TRY(form_leaf(call, m, own));
        struct tr_op_add both = {count, leaves + m * count, own, sum};
        TR_TRY(tr_device_add(call->device, &both));
        tr_tree_push(&fold, last);
        for (int right; (right = tr_tree_combine(&fold)) > 0;) {
            float *left = places + (right - 1) * count;
            struct tr_op_add add = {count, left, places + right * count, last && right == 1 ? node : left};
            TR_TRY(tr_device_add(call->device, &add));
        }
    }
    return TR_OK;
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    if (call->layer->tie.buffer) {
        for (int32_t j = 0; j < call->cut->nodes; j++) TR_TRY(form_shared_node(call, j));
        return TR_OK;
    }
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
    .looks_up = true,
    .takes_tokens = true,
    .help = "a learned vector for each token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .lends = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
