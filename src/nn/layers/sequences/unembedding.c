/* unembedding: a score for every token of the vocabulary, the inner product of the input with the token's
   vector in an embedding: the output weights are the input weights (Press, Wolf 2017). */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    char *embedding;
};

static const struct tr_option table[] = {
    {"embedding", TR_OPTION_STRING, offsetof(struct options, embedding), NULL, 0, 0, NULL,
     "name of the embedding whose vectors it shares"},
};

static int64_t width_of(const struct tr_layer *layer)
{
    return tr_shape_count(&layer->in[0]);
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    const struct tr_layer *lender;
    TR_TRY(tr_builder_tie(builder, layer, options->embedding, &lender));
    int64_t width = width_of(layer), vectors = tr_shape_count(&lender->out);
    if (width != vectors)
        return tr_fail(
            TR_EINVAL,
            "its input has %lld numbers, the vectors of \"%s\" have %lld; put a dense layer of %lld "
            "units in front",
            (long long)width, lender->name, (long long)vectors, (long long)vectors);
    int64_t vocabulary = *(const int64_t *)tr_layer_option(lender, "vocabulary");
    layer->out = (struct tr_shape){1, {vocabulary}, layer->in[0].sequence};
    layer->flops = 2 * width * vocabulary;
    layer->keeps_input = true;
    return TR_OK;
}

/* y = x table^T: the chain over the width. */
static tr_status forward(const struct tr_layer_call *call)
{
    const struct tr_layer *layer = call->layer;
    struct tr_op_dense_backward_data op = {
        call->rows, layer->out.size[0], width_of(layer), call->x[0], call->borrowed.parameter, call->y,
    };
    return tr_device_dense_backward_data(call->device, &op);
}

/* The contribution of microbatch `m` to the table's gradient: the chain over its rows of dy x. */
static tr_status leave_leaf(const struct tr_layer_call *call, int32_t m)
{
    int64_t vocabulary = call->layer->out.size[0], width = width_of(call->layer), first = call->cut->row[m];
    int64_t row[2];
    int32_t bound[2];
    struct tr_op_dense_backward_weights op = {
        .in = vocabulary,
        .out = width,
        .x = call->dy + first * vocabulary,
        .dy = call->x[0] + first * width,
        .dw = call->borrowed.leaves + m * vocabulary * width,
        .cut = tr_cut_single(call->cut, m, row, bound),
    };
    return tr_device_dense_backward_weights(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    for (int32_t m = 0; m < call->cut->count && call->borrowed.leaves; m++) TR_TRY(leave_leaf(call, m));
    if (!call->dx[0]) return TR_OK;
    struct tr_op_dense_forward op = {
        .rows = call->rows,
        .in = call->layer->out.size[0],
        .out = width_of(call->layer),
        .x = call->dy,
        .w = call->borrowed.parameter,
        .y = call->dx[0],
        .activation = TR_ACT_NONE,
    };
    return tr_device_dense_forward(call->device, &op);
}

const struct tr_layer_class tr_layer_unembedding = {
    .name = "unembedding",
    .help = "scores of all tokens with the vectors of an embedding, whose weights it shares",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
