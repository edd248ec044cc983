/* The list of all losses. To add one: a file here, and a line below. */
#ifndef TR_NN_LOSSES_TABLE_H
#define TR_NN_LOSSES_TABLE_H

#include "base/fail.h"
#include "nn/loss.h"

/* The first is the default. Digests of settings use the names, not the positions. */
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
    X(contrastive)                                                                                           \
    X(triplet)                                                                                               \
    X(heads)

/* TR_LOSS_<name>: its position in the list. */
#define TR_LOSS_PLACE(class) TR_LOSS_##class,
enum { TR_LOSS_TABLE(TR_LOSS_PLACE) };
#undef TR_LOSS_PLACE

#define TR_LOSS_DECLARE(class) extern const struct tr_loss_class tr_loss_##class;
TR_LOSS_TABLE(TR_LOSS_DECLARE)
#undef TR_LOSS_DECLARE

/* Multiplies the losses and the gradient of rows of `width` scores by the weights of their classes: in
   training, and where there are weights. Enqueued. */
static inline tr_status tr_loss_weigh_classes(const struct tr_loss_call *call, int64_t width)
{
    if (!call->training || !call->weight) return TR_OK;
    const struct tr_op_weigh_rows weigh = {call->rows,  width,      call->weight,
                                           call->label, call->loss, call->gradient};
    return tr_device_weigh_rows(call->device, &weigh);
}

#endif
