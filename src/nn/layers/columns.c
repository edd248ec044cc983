/* columns: numbers of an example that come beside its text. No layer of model files: the network has it in
 * front of them where the data are a text joined with numbers, and whoever feeds a pass writes its output.
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

/* The numbers are there. */
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
