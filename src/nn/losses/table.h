/* The list of all losses. To add one: a file here, and a line below. */
#ifndef TR_NN_LOSSES_TABLE_H
#define TR_NN_LOSSES_TABLE_H

#include "base/fail.h"
#include "nn/loss.h"

/* The first is the default. Digests of settings have the names, not the places. */
#define TR_LOSS_TABLE(X)                                                                                     \
    X(softmax_cross_entropy)                                                                                 \
    X(mean_squared_error)                                                                                    \
    X(binary_cross_entropy)                                                                                  \
    X(mean_absolute_error)                                                                                   \
    X(huber)                                                                                                 \
    X(soft_cross_entropy)                                                                                    \
    X(focal)                                                                                                 \
    X(quantile)                                                                                              \
    X(poisson)                                                                                               \
    X(heads)

/* TR_LOSS_<name>: its place in the list. */
#define TR_LOSS_PLACE(class) TR_LOSS_##class,
enum { TR_LOSS_TABLE(TR_LOSS_PLACE) };
#undef TR_LOSS_PLACE

#define TR_LOSS_DECLARE(class) extern const struct tr_loss_class tr_loss_##class;
TR_LOSS_TABLE(TR_LOSS_DECLARE)
#undef TR_LOSS_DECLARE

#endif
