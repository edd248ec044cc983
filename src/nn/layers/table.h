/* The list of all layers. To add one: a file here, and a line below. */
#ifndef TR_NN_LAYERS_TABLE_H
#define TR_NN_LAYERS_TABLE_H

#include "base/fail.h"
#include "nn/layer.h"

/* In alphabetical order; tr_layer_classes and the manual are made from it. */
#define TR_LAYER_TABLE(X)                                                                                    \
    X(add)                                                                                                   \
    X(attention)                                                                                             \
    X(average_pool)                                                                                          \
    X(batch_norm)                                                                                            \
    X(bidirectional)                                                                                         \
    X(concat)                                                                                                \
    X(conv)                                                                                                  \
    X(conv1d)                                                                                                \
    X(conv_transpose)                                                                                        \
    X(cross_attention)                                                                                       \
    X(dense)                                                                                                 \
    X(dropout)                                                                                               \
    X(embedding)                                                                                             \
    X(first)                                                                                                 \
    X(flatten)                                                                                               \
    X(gelu)                                                                                                  \
    X(global_average_pool)                                                                                   \
    X(global_max_pool)                                                                                       \
    X(group_norm)                                                                                            \
    X(gru)                                                                                                   \
    X(hard_swish)                                                                                            \
    X(instance_norm)                                                                                         \
    X(last)                                                                                                  \
    X(layer_norm)                                                                                            \
    X(leaky_relu)                                                                                            \
    X(lstm)                                                                                                  \
    X(max_pool)                                                                                              \
    X(multiply)                                                                                              \
    X(position)                                                                                              \
    X(relu)                                                                                                  \
    X(relu6)                                                                                                 \
    X(reshape)                                                                                               \
    X(rms_norm)                                                                                              \
    X(sigmoid)                                                                                               \
    X(silu)                                                                                                  \
    X(slice)                                                                                                 \
    X(softmax)                                                                                               \
    X(stochastic_depth)                                                                                      \
    X(tanh)                                                                                                  \
    X(tokens)                                                                                                \
    X(unembedding)                                                                                           \
    X(upsample)

#define TR_LAYER_DECLARE(class) extern const struct tr_layer_class tr_layer_##class;
TR_LAYER_TABLE(TR_LAYER_DECLARE)
#undef TR_LAYER_DECLARE

/* The first option of a class that takes several inputs: those in addition to the layer before it. */
#define TR_LAYER_WITH "with"
#define TR_LAYER_WITH_OPTION(type, what)                                                                     \
    {                                                                                                        \
        TR_LAYER_WITH, TR_OPTION_STRING_LIST, offsetof(type, with), "", 0, 0, NULL, what                     \
    }

#endif
