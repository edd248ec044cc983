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
