/* Listing the tensors of a layout: what the layouts share. */
#ifndef TR_EXPORT_LAYOUT_LIST_H
#define TR_EXPORT_LAYOUT_LIST_H

#include "export/layout.h"

/* The greatest number of tensors of a layer. */
#define LAYOUT_TENSORS_MOST TR_LAYER_PARAMETERS

/* The list being made. */
struct layout_lister {
    const struct tr_model *model;
    const struct tr_layer *layer; /* current layer */
    struct tr_shape order;        /* of its input */
    struct tr_layout_list *list;
};

/* Adds a tensor to the list: a parameter of the current layer, unchanged, called "<layer>.<name>". Returns
   it. */
struct tr_layout_tensor *layout_add(struct layout_lister *lister, int parameter, const char *name);
/* Lists the tensors of all layers as PyTorch has them (layout_torch.c). Errors of tr_layout_orders(). */
tr_status layout_list_torch(struct layout_lister *lister);

#endif
