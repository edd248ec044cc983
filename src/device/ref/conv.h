/* Shared by both definitions of a convolution. */
#ifndef TR_DEVICE_REF_CONV_H
#define TR_DEVICE_REF_CONV_H

#include "device/ops.h"
#include "trireme/status.h"

/* Writes a->db, which is not NULL: per node the tree over microbatches of the sum chain over (row, oh, ow) of
   dy. TR_ENOMEM as ref_tree(). Any thread. */
tr_status ref_conv_bias(const struct tr_op_conv_backward_weights *a);

#endif
