/* Listing the tensors of a layout: what the layouts share. */
#ifndef TR_EXPORT_LAYOUT_LIST_H
#define TR_EXPORT_LAYOUT_LIST_H

#include "export/layout.h"

/* How many tensors a layer has at most. */
#define LAYOUT_TENSORS_MOST TR_LAYER_PARAMETERS

/* What is being listed. */
struct layout_lister {
    const struct tr_model *model;
    const struct tr_layer *layer; /* at hand */
    struct tr_shape order;        /* of its input */
    struct tr_layout_list *list;
};

/* The new last tensor of the list: a parameter of the layer at hand, as it is, called "<layer>.<name>". */
struct tr_layout_tensor *layout_add(struct layout_lister *lister, int parameter, const char *name);
/* Lists the tensors of all layers as PyTorch has them (layout_torch.c). Errors of tr_layout_orders(). */
tr_status layout_list_torch(struct layout_lister *lister);

#endif
