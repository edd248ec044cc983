#include "nn/options.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

#define AT(field) offsetof(struct tr_layer_common, field)
const struct tr_option tr_layer_common_options[] = {
    {.key = "name",
     .type = TR_OPTION_STRING,
     .offset = AT(name),
     .fallback = "",
     .help = "name of the layer; default: the kind and a number (`conv1`)"},
    {.key = "from",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(from),
     .fallback = "",
     .help = "names of the layers that give its input; default: the previous layer; `input` is the network's "
             "input"},
    {.key = "frozen",
     .type = TR_OPTION_BOOL,
     .offset = AT(frozen),
     .fallback = "false",
     .help = "do not train the layer's parameters; running statistics of a `batch_norm` follow the data"},
    {.key = "rate_factor",
     .type = TR_OPTION_FLOAT,
     .offset = AT(rate_factor),
     .fallback = "1",
     .least = 0,
     .most = INFINITY,
     .help = "factor on the learning rate of the layer's parameters"},
    {.key = "decay_factor",
     .type = TR_OPTION_FLOAT,
     .offset = AT(decay_factor),
     .fallback = "1",
     .least = 0,
     .most = INFINITY,
     .help = "factor on `l2` and `weight_decay` of the layer's parameters"},
    {.key = "share",
     .type = TR_OPTION_STRING,
     .offset = AT(share),
     .fallback = "",
     .help = "name of an earlier layer of this kind whose parameters this layer uses; the gradients of all "
             "uses are added",
     .flags = TR_OPTION_QUIET},
};
#undef AT
const int32_t tr_layer_common_option_count = TR_OPTION_COUNT(tr_layer_common_options);

/* They are stored after the class's own struct. */
static size_t common_offset(const struct tr_layer_class *class)
{
    size_t align = _Alignof(struct tr_layer_common);
    return (class->options_size + align - 1) / align * align;
}

const struct tr_layer_common *tr_layer_common(const struct tr_layer *layer)
{
    return (const struct tr_layer_common *)((const char *)layer->options + common_offset(layer->class));
}

static int32_t full_count(const struct tr_layer_class *class)
{
    return class->option_count + tr_layer_common_option_count;
}

/* The class's option table followed by the options of all layers. Returned, free with tr_free(). */
static struct tr_option *full_table(const struct tr_layer_class *class)
{
    struct tr_option *table = tr_alloc((size_t)full_count(class), sizeof *table);
    if (!table) return NULL;
    if (class->option_count) memcpy(table, class->options, (size_t) class->option_count * sizeof *table);
    for (int32_t i = 0; i < tr_layer_common_option_count; i++) {
        struct tr_option *option = &table[class->option_count + i];
        *option = tr_layer_common_options[i];
        option->offset += common_offset(class);
    }
    return table;
}

tr_status tr_layer_read_options(struct tr_layer *layer, const tr_config *node)
{
    struct tr_option *table = full_table(layer->class);
    if (table)
        layer->options = tr_alloc_zero(1, common_offset(layer->class) + sizeof(struct tr_layer_common));
    if (!layer->options) {
        tr_free(table);
        return TR_ENOMEM;
    }
    int32_t count = full_count(layer->class);
    tr_status status = tr_options_defaults(table, count, layer->options);
    if (status == TR_OK) status = tr_options_read(table, count, node, layer->class->name, layer->options);
    tr_free(table);
    /* A missing section has no position for messages. */
    return status == TR_OK || node ? status : tr_fail_in(status, "%s", layer->where);
}

void tr_layer_release_options(struct tr_layer *layer)
{
    if (!layer->options) return;
    tr_options_release(layer->class->options, layer->class->option_count, layer->options);
    tr_options_release(tr_layer_common_options, tr_layer_common_option_count,
                       (char *)layer->options + common_offset(layer->class));
    tr_free(layer->options);
}
