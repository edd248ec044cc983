/* The layer of the numbers beside a text, which model files cannot name. */
#ifndef TR_NN_LAYERS_COLUMNS_H
#define TR_NN_LAYERS_COLUMNS_H

#include "nn/layers/table.h"

/* Its one entry is `columns: SIZE`, a vector of so many numbers for each example (layer->fed). */
extern const struct tr_registry tr_layer_columns;

#endif
