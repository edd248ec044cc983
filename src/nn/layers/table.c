#include "nn/layers/table.h"

#include <string.h>

#define TR_LAYER_ADDRESS(class) &tr_layer_##class,
static const struct tr_layer_class *const classes[] = {TR_LAYER_TABLE(TR_LAYER_ADDRESS)};
#undef TR_LAYER_ADDRESS

const struct tr_layer_class *const *tr_layer_classes(int *count)
{
    *count = sizeof classes / sizeof classes[0];
    return classes;
}

const struct tr_layer_class *tr_layer_class_find(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    return NULL;
}

const void *tr_layer_option(const struct tr_layer *layer, const char *key)
{
    const struct tr_layer_class *class = layer->class;
    for (int32_t i = 0; i < class->option_count; i++)
        if (strcmp(class->options[i].key, key) == 0)
            return (const char *)layer->options + class->options[i].offset;
    return NULL;
}

const struct tr_window *tr_layer_window(const struct tr_layer *layer)
{
    const struct tr_layer_class *class = layer->class;
    bool windows = class == &tr_layer_conv || class == &tr_layer_max_pool || class == &tr_layer_average_pool;
    return windows ? layer->state : NULL;
}
