/* The layers of what is beside a text, which model files cannot name. */
#ifndef TR_NN_LAYERS_COLUMNS_H
#define TR_NN_LAYERS_COLUMNS_H

#include "nn/layers/table.h"

/* Its entries are `columns: SIZE`, a vector of so many numbers for each example, and `second_text:
   VOCABULARY`, the tokens of another text (layer->fed). */
extern const struct tr_registry tr_layer_columns;

#endif
