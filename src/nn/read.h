/* Reading the layers of a model file: classes, options, names and connections: everything that does not
   need shapes. */
#ifndef TR_NN_READ_H
#define TR_NN_READ_H

#include "nn/model.h"

/* Makes room in the model for the layers in the list `layers:` of `root`, and for those of its named
   inputs; *items is that list, borrowed from the tree. */
tr_status tr_layers_begin(struct tr_model *model, const tr_config *root, const tr_config **items);
/* Reads the next layer for a named input from `text`, in the language of model files, as one of the
   classes in `layers`. Otherwise as
   tr_layer_read(). Call it directly after tr_layers_begin(), before other layers; then set
   model->part_layers to the number of these layers. */
tr_status tr_layer_read_part(struct tr_model *model, const struct tr_registry *layers, const char *text,
                             struct tr_layer **out);
/* Reads the next layer, of one of the classes in `layers`, into the model, which then owns it, also after
   a failure. Its `in` are the outputs of the layers that it takes, as far as they are built. TR_EINVAL
   with file, line and key. */
tr_status tr_layer_read(struct tr_model *model, const struct tr_registry *layers, const tr_config *item,
                        struct tr_layer **out);

#endif
