/* The options of a layer: those of its class, followed by those that every layer has. */
#ifndef TR_NN_OPTIONS_H
#define TR_NN_OPTIONS_H

#include "nn/layer.h"

/* The options of every layer. */
struct tr_layer_common {
    char *name;
    struct tr_string_list from;
    bool frozen;
    float rate_factor, decay_factor;
    char *share;
};

/* Reads the options of a layer whose class is known; NULL: all defaults. They must be released, also after
   a failure. TR_EINVAL with file, line and key, TR_ENOMEM. */
tr_status tr_layer_read_options(struct tr_layer *layer, const tr_config *node);
/* Borrowed from the layer, whose options were read. */
const struct tr_layer_common *tr_layer_common(const struct tr_layer *layer);
/* Frees the options, if there are any. It does not allocate, since it also runs when memory is exhausted. */
void tr_layer_release_options(struct tr_layer *layer);

#endif
