/* columns: the numbers beside the text of an example, and second_text: the tokens of another text. Model
 * files cannot name these layers: a network for a text joined with numbers, or with another text, begins with
 * them, and the feed of a pass (job/feed) writes their outputs.
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

/* The feed has written the output. */
static tr_status forward(const struct tr_layer_call *call)
{
    (void)call;
    return TR_OK;
}

static const struct tr_layer_class columns_class = {
    .name = "columns",
    .help = "numbers beside a text",
    TR_ENTRY_OPTIONS(table, struct options),
    .takes_tokens = true,
    .inputs = 1,
    .build = build,
    .forward = forward,
};

struct text_options {
    int64_t vocabulary;
};

static const struct tr_option text_table[] = {
    {"vocabulary", TR_OPTION_INT64, offsetof(struct text_options, vocabulary), "0", 0, 1 << 28, NULL,
     "number of different tokens; 0: not known"},
};

static tr_status build_text(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    layer->out = (struct tr_shape){0, {0}, true};
    layer->tokens_out = TR_TOKENS_OF_SECOND;
    layer->fed = true;
    return TR_OK;
}

static const struct tr_layer_class second_text_class = {
    .name = "second_text",
    .help = "the tokens of another text",
    TR_ENTRY_OPTIONS(text_table, struct text_options),
    .takes_tokens = true,
    .inputs = 1,
    .build = build_text,
    .forward = forward,
};

static const struct tr_entry *const entries[] = {&columns_class.entry, &second_text_class.entry, NULL};
const struct tr_registry tr_layer_columns = {.kind = "layer", .entries = entries};
