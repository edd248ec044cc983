/* The common parts of layer classes: fused activations, weights with an optional bias, scales of norms. */
#ifndef TR_NN_LAYERS_COMMON_H
#define TR_NN_LAYERS_COMMON_H

#include "nn/layer.h"

/* Names of the activations that a dense or convolution layer can apply to its output. */
extern const struct tr_choice tr_fused_activation_choices[];

/* Options of layers with weights; their tables use the same keys. */
struct tr_affine_options {
    int32_t activation;              /* enum tr_activation */
    float slope;                     /* for leaky_relu */
    const tr_config *weights, *bias; /* initializers; NULL for the defaults */
    bool use_bias;
};

/* The rows of an option table for a struct that holds a `struct tr_affine_options affine`. */
#define TR_AFFINE_OPTIONS(type)                                                                              \
    {"activation",                                                                                           \
     TR_OPTION_CHOICE,                                                                                       \
     offsetof(type, affine.activation),                                                                      \
     "none",                                                                                                 \
     0,                                                                                                      \
     0,                                                                                                      \
     tr_fused_activation_choices,                                                                            \
     "applied to the output"},                                                                               \
        {"slope",                                                                                            \
         TR_OPTION_FLOAT,                                                                                    \
         offsetof(type, affine.slope),                                                                       \
         "0.01",                                                                                             \
         0x1p-20,                                                                                            \
         1,                                                                                                  \
         NULL,                                                                                               \
         "slope of leaky_relu for negative inputs"},                                                         \
        {"weights", TR_OPTION_NODE, offsetof(type, affine.weights), "glorot_uniform", 0,                     \
         0,         NULL,           "initializer of the weights"},                                           \
        {"bias", TR_OPTION_NODE, offsetof(type, affine.bias), "0", 0, 0, NULL, "initializer of the bias"},   \
    {                                                                                                        \
        "use_bias", TR_OPTION_BOOL, offsetof(type, affine.use_bias), "true", 0, 0, NULL,                     \
            "add a bias to each output"                                                                      \
    }

/* Declares "weights" of `shape` and, if wanted, "bias" [outputs] as parameters 0 and 1, and notes what the
 * activation's gradient needs.
 */
tr_status tr_affine_build(struct tr_layer *layer, struct tr_builder *builder,
                          const struct tr_affine_options *options, struct tr_shape shape, int64_t outputs,
                          int64_t fan_in, int64_t fan_out);

/* The bias of a call, or NULL. */
static inline const float *tr_affine_bias(const struct tr_layer_call *call)
{
    return call->layer->own_slots > 1 ? call->parameter[1] : NULL;
}
static inline float *tr_affine_bias_gradient(const struct tr_layer_call *call)
{
    return call->layer->own_slots > 1 ? call->gradient[1] : NULL;
}

/* Turns call->dy, the gradient of the output, into that before the activation, in place; nothing where the
 * consumer has done it.
 */
tr_status tr_affine_activation_backward(const struct tr_layer_call *call,
                                        const struct tr_affine_options *options);

/* The option for the number of channel groups of a convolution, for the member `groups`. */
#define TR_GROUPS_OPTION(type)                                                                               \
    {                                                                                                        \
        "groups", TR_OPTION_INT64, offsetof(type, groups), "1", 1, 1 << 20, NULL,                            \
            "groups of channels; an output reads the channels of its own group only; as many groups as "     \
            "channels: depthwise"                                                                            \
    }

/* TR_EINVAL unless `groups` divides both. */
tr_status tr_layer_groups(int64_t groups, int64_t channels, int64_t filters);

/* The size of the last dimension of a layer's output, by which norms scale and shift; 1 for a single
   number. */
int64_t tr_layer_channels(const struct tr_layer *layer);

/* Declares a parameter [size] that begins as `value`, an initializer's name or number. */
tr_status tr_layer_vector(struct tr_layer *layer, struct tr_builder *builder, const char *name,
                          enum tr_parameter_kind kind, const char *value, int64_t size);
/* Declares "gamma" and "beta", both [size], the next two parameters: 1 and 0. */
tr_status tr_layer_scale(struct tr_layer *layer, struct tr_builder *builder, int64_t size);

/* The option for the number that a norm adds to the variance, for the member `epsilon`. */
#define TR_EPSILON_OPTION(type)                                                                              \
    {                                                                                                        \
        "epsilon", TR_OPTION_FLOAT, offsetof(type, epsilon), "1e-5", 1e-12, 1, NULL, "added to the variance" \
    }

/* TR_EINVAL unless the layer's input is a sequence. */
tr_status tr_layer_wants_sequence(const struct tr_layer *layer);

/* Microbatch `m` of a call, as a single node; `row` [2] and `bound` [2] are memory that the result
   borrows. */
struct tr_cut tr_cut_single(const struct tr_cut *cut, int32_t m, int64_t row[2], int32_t bound[2]);

/* Normalizes groups of channels of each row, scaled by parameter 0 and shifted by parameter 1; buffers 0
   and 1 of the layer keep mean and inverse deviation, which backward reads. */
tr_status tr_layer_group_norm_forward(const struct tr_layer_call *call, int64_t groups, float epsilon);
tr_status tr_layer_group_norm_backward(const struct tr_layer_call *call, int64_t groups);

#endif
