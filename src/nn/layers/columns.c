/* columns: the numbers beside the text of an example. Model files cannot name this layer: a network for a
 * text joined with numbers begins with it, and the feed of a pass (job/feed) writes its output.
 */
#include "nn/layers/columns.h"

struct options {
    int64_t size;
};

static const struct tr_option table[] = {
    {"size", TR_OPTION_INT64, offsetof(struct options, size), NULL, 1, TR_OPTION_WHOLE, NULL, "how many"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    (void)builder;
    layer->out = (struct tr_shape){1, {options->size}, false};
    layer->fed = true;
    return TR_OK;
}

/* The feed has written the numbers. */
static tr_status forward(const struct tr_layer_call *call)
{
    (void)call;
    return TR_OK;
}

static const struct tr_layer_class columns_class = {
    .name = "columns",
    .help = "numbers beside a text",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
};

static const struct tr_entry *const entries[] = {&columns_class.entry, NULL};
const struct tr_registry tr_layer_columns = {.kind = "layer", .entries = entries};
