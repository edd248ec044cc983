/* The common part of the recurrent layers (lstm, gru): the product of all tokens with the input weights
 * before the recurrence, its gradients, and the parameters.
 */
#ifndef TR_NN_LAYERS_RECURRENT_H
#define TR_NN_LAYERS_RECURRENT_H

#include "nn/layer.h"

/* The options of every recurrent layer begin with these. */
struct tr_recurrent_options {
    int64_t units;                                       /* of the hidden state */
    const tr_config *weights, *recurrent_weights, *bias; /* initializers; NULL for the defaults */
};

/* Rows of an option table for a struct that begins with a `struct tr_recurrent_options recurrent`: the
   first ones, and the alternative names that all layers accept. */
#define TR_RECURRENT_UNITS(type)                                                                             \
    {                                                                                                        \
        "units", TR_OPTION_INT64, offsetof(type, recurrent.units), NULL, 1, 1 << 16, NULL,                   \
            "size of the hidden state"                                                                       \
    }
#define TR_RECURRENT_WEIGHTS(type)                                                                           \
    {"weights", TR_OPTION_NODE, offsetof(type, recurrent.weights), "glorot_uniform", 0,                      \
     0,         NULL,           "initializer of the input weights"},                                         \
    {                                                                                                        \
        "recurrent_weights", TR_OPTION_NODE, offsetof(type, recurrent.recurrent_weights), "glorot_uniform",  \
            0, 0, NULL, "initializer of the recurrent weights"                                               \
    }

/* Parameters: [in][gates * units], [units][gates * units], [gates * units], and if there are two biases that
   of the recurrence, [gates * units]. */
enum { TR_RECURRENT_INPUT, TR_RECURRENT_HIDDEN, TR_RECURRENT_BIAS, TR_RECURRENT_HIDDEN_BIAS };

/* The layer's first buffers: gates [gates * units], further data of a row for backward [units], and the
   gradients of the gates before activation. */
enum { TR_RECURRENT_GATES, TR_RECURRENT_STATE, TR_RECURRENT_GATE_GRADIENTS, TR_RECURRENT_BUFFERS };

/* Declares the parameters, the buffers and the output, [units] for each token. `biases`: 1 or 2. TR_EINVAL
 * for an input that is no sequence. */
tr_status tr_recurrent_build(struct tr_layer *layer, struct tr_builder *builder,
                             const struct tr_recurrent_options *options, int64_t gates, int biases);
/* y [rows][gates * units] = the input times its weights, without a bias. */
tr_status tr_recurrent_input(const struct tr_layer_call *call, int64_t gates, float *y);
/* The gradients of the input weights, of the first bias and, if wanted, of the input, from dgates
   [rows][gates * units], the gradients of the gates before activation. */
tr_status tr_recurrent_input_backward(const struct tr_layer_call *call, int64_t gates, const float *dgates);

#endif
