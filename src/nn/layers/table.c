#include "nn/layers/table.h"

#include <string.h>

#define ENTRY(class) &tr_layer_##class.entry,
static const struct tr_entry *const entries[] = {TR_LAYER_TABLE(ENTRY) NULL};
#undef ENTRY

const struct tr_registry tr_layer_classes = {
    .kind = "layer",
    .form = "`relu` or `dense: {units: 10}`",
    .entries = entries,
};

const void *tr_layer_option(const struct tr_layer *layer, const char *key)
{
    const struct tr_layer_class *class = layer->class;
    for (int32_t i = 0; i < class->option_count; i++)
        if (strcmp(class->options[i].key, key) == 0)
            return (const char *)layer->options + class->options[i].offset;
    return NULL;
}

const struct tr_sliding_window *tr_layer_window(const struct tr_layer *layer)
{
    return layer->class->slides ? layer->state : NULL;
}
