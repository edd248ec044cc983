/* A network as a TensorFlow GraphDef, for TensorBoard's page of graphs.
 *
 * Every layer is a box with its name. The box contains the operation, with its options as attributes, its
 * parameters, and the activation where the layer applies one. Edges carry the shapes, with -1 for numbers
 * of examples and of tokens. The loss is a box that compares the output with `labels` or `targets`.
 */
#ifndef TR_IO_GRAPH_H
#define TR_IO_GRAPH_H

#include "nn/model.h"

/* *bytes is returned, free with tr_free(). TR_ENOMEM. Any thread. */
tr_status tr_graph_pack(const struct tr_model *model, uint8_t **bytes, size_t *size);

#endif
