/* dropout: zeroes a share of its inputs in training and scales the rest (Srivastava et al. 2014, inverted
 * form). stochastic_depth: the same for whole examples (Huang et al. 2016), which drops a residual branch
 * from the sum. The mask is a function of seed, step, example, layer and, for dropout, element; it is
 * never stored.
 */
#include "nn/layers/table.h"

struct options {
    float rate;
};

#define RATE(text)                                                                                           \
    {                                                                                                        \
        "rate", TR_OPTION_FLOAT, offsetof(struct options, rate), NULL, 0, 0.9999, NULL, text                 \
    }
static const struct tr_option dropout_table[] = {RATE("fraction of the values that are dropped")};
static const struct tr_option depth_table[] = {RATE("fraction of the examples whose values become 0")};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    layer->out = layer->in[0];
    layer->flops = tr_shape_count(&layer->out);
    return TR_OK;
}

/* Both operations have the same members. */
#define ARGUMENTS                                                                                            \
    {                                                                                                        \
        .examples = call->examples, .width = tr_shape_count(&call->layer->out),                              \
        .offset = call->layer->out.sequence ? call->offset : NULL, .x = x, .y = y, .rate = options->rate,    \
        .key = {call->dropout_key[0], call->dropout_key[1]}, .layer = call->layer_number,                    \
        .first_example = call->first_example, .scalars = call->scalars,                                      \
    }

static tr_status run(const struct tr_layer_call *call, const float *x, float *y)
{
    const struct options *options = call->layer->options;
    if (call->layer->class == &tr_layer_dropout) {
        const struct tr_op_dropout op = ARGUMENTS;
        return tr_device_dropout(call->device, &op);
    }
    const struct tr_op_drop_examples op = ARGUMENTS;
    return tr_device_drop_examples(call->device, &op);
}

static tr_status forward(const struct tr_layer_call *call)
{
    if (call->training) return run(call, call->x[0], call->y);
    struct tr_op_scale copy = {call->rows * tr_shape_count(&call->layer->out), 1, call->x[0], call->y};
    return tr_device_scale(call->device, &copy);
}

static tr_status backward(const struct tr_layer_call *call)
{
    return run(call, call->dy, call->dx[0]);
}

const struct tr_layer_class tr_layer_dropout = {
    .name = "dropout",
    .help = "drops a fraction of the values in training",
    TR_ENTRY_OPTIONS(dropout_table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};

const struct tr_layer_class tr_layer_stochastic_depth = {
    .name = "stochastic_depth",
    .help = "leaves out a branch for a fraction of the examples in training",
    TR_ENTRY_OPTIONS(depth_table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
