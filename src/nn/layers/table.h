/* The list of all layer classes. */
#ifndef TR_NN_LAYERS_TABLE_H
#define TR_NN_LAYERS_TABLE_H

#include "base/fail.h"
#include "nn/layer.h"

/* In alphabetical order; tr_layer_classes() and the documentation are made from it. */
#define TR_LAYER_TABLE(X)                                                                                    \
    X(add)                                                                                                   \
    X(average_pool)                                                                                          \
    X(batch_norm)                                                                                            \
    X(conv)                                                                                                  \
    X(dense)                                                                                                 \
    X(dropout)                                                                                               \
    X(embedding)                                                                                             \
    X(flatten)                                                                                               \
    X(gelu)                                                                                                  \
    X(last)                                                                                                  \
    X(layer_norm)                                                                                            \
    X(leaky_relu)                                                                                            \
    X(lstm)                                                                                                  \
    X(max_pool)                                                                                              \
    X(relu)                                                                                                  \
    X(sigmoid)                                                                                               \
    X(softmax)                                                                                               \
    X(tanh)

#define TR_LAYER_DECLARE(class) extern const struct tr_layer_class tr_layer_##class;
TR_LAYER_TABLE(TR_LAYER_DECLARE)
#undef TR_LAYER_DECLARE

/* The option that names the second input of a class with two. */
#define TR_LAYER_SECOND_INPUT "with"

/* Members of a class that describe its options. */
#define TR_LAYER_OPTIONS(table, type)                                                                        \
    .options = (table), .option_count = sizeof(table) / sizeof(table)[0], .options_size = sizeof(type)

#endif
