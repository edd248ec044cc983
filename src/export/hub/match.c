#include "export/hub/match.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

/* ---- what config.json would say ---- */

static bool is(const struct tr_layer *layer, const char *class)
{
    return strcmp(layer->class->name, class) == 0;
}

static int64_t integer_of(const struct tr_layer *layer, const char *key)
{
    return *(const int64_t *)tr_layer_option(layer, key);
}

static double double_of(const struct tr_layer *layer, const char *key)
{
    return *(const double *)tr_layer_option(layer, key);
}

static bool truth_of(const struct tr_layer *layer, const char *key)
{
    return *(const bool *)tr_layer_option(layer, key);
}

/* The shortest decimals of a float, as a double, as a file shows them. */
static double decimals_of(const struct tr_layer *layer, const char *key)
{
    char text[TR_TEXT_NUMBER_SIZE];
    double value = 0;
    tr_text_double(tr_text_from_float(*(const float *)tr_layer_option(layer, key), text), &value);
    return value;
}

/* The first layer of a class at or after `from`, or NULL. */
static const struct tr_layer *first_of(const struct tr_model *model, const char *class, int from)
{
    for (int i = from; i < model->layer_count; i++)
        if (is(&model->layers[i], class)) return &model->layers[i];
    return NULL;
}

/* In a GPT-2 everything else follows from the heads. */
static tr_status read_gpt2(const struct tr_layer *layer, struct tr_hub_config *out)
{
    out->kv_heads = out->heads;
    out->head_size = out->width / out->heads;
    out->bias = true;
    if (out->width % out->heads == 0) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\": %lld heads do not divide the %lld numbers of a token",
                   layer->where, layer->name, (long long)out->heads, (long long)out->width);
}

static tr_status read_attention(const struct tr_layer *layer, struct tr_hub_config *out)
{
    out->heads = integer_of(layer, "heads");
    if (out->kind == TR_HUB_GPT2) return read_gpt2(layer, out);
    out->kv_heads = integer_of(layer, "kv_heads");
    out->head_size = integer_of(layer, "width") / out->heads;
    out->bias = truth_of(layer, "use_bias");
    out->rotary = decimals_of(layer, "rotary");
    out->factor = double_of(layer, "rotary_factor");
    out->original = double_of(layer, "rotary_original");
    if (out->original > 0) {
        out->low = double_of(layer, "rotary_low");
        out->high = double_of(layer, "rotary_high");
    }
    out->window = integer_of(layer, "window");
    out->kind = out->bias ? TR_HUB_QWEN2 : out->window > 0 ? TR_HUB_MISTRAL : TR_HUB_LLAMA;
    if (integer_of(layer, "context") > 0) out->context = integer_of(layer, "context");
    if (out->rotary == 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s: layer \"%s\" has no `rotary` positions, and the network no `position`; such a "
                       "directory needs one of the two",
                       layer->where, layer->name);
    if (out->kind == TR_HUB_QWEN2 && out->window > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s: layer \"%s\" has `window` and biases of queries, keys and values; a network like "
                       "%s has a window in some layers only",
                       layer->where, layer->name, tr_hub_kind_name(out->kind));
    return TR_OK;
}

static int64_t blocks_of(const struct tr_model *model)
{
    int64_t count = 0;
    for (int i = 0; i < model->layer_count; i++) count += is(&model->layers[i], "attention");
    return count;
}

static tr_status read_model(const struct tr_model *model, int64_t window, struct tr_hub_config *out)
{
    static const char wanted[] = "such a directory holds language models like GPT-2, Llama, Mistral and "
                                 "Qwen2, from `embedding` to `unembedding` or `dense`";
    const struct tr_layer *first = &model->layers[0];
    if (model->layer_count == 0 || !model->input.sequence || model->input.rank != 0 ||
        !is(first, "embedding"))
        return tr_fail(TR_EUNSUPPORTED, "the network takes no tokens with an `embedding`; %s", wanted);
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].sharer_of > 0)
            return tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\" shares the parameters of another; %s",
                           model->layers[i].where, model->layers[i].name, wanted);
    const struct tr_layer *places = first_of(model, "position", 0),
                          *attention = first_of(model, "attention", 0);
    const struct tr_layer *norm = first_of(model, places ? "layer_norm" : "rms_norm", 0);
    if (!attention || !norm)
        return tr_fail(TR_EUNSUPPORTED, "the network has no `%s`; %s",
                       attention ? (places ? "layer_norm" : "rms_norm") : "attention", wanted);
    const struct tr_layer *inner = first_of(model, "dense", (int)(attention - model->layers)),
                          *gelu = first_of(model, "gelu", 0), *last = &model->layers[model->layer_count - 1];
    *out = (struct tr_hub_config){
        .kind = places ? TR_HUB_GPT2 : TR_HUB_LLAMA,
        .width = integer_of(first, "width"),
        .vocabulary = integer_of(first, "vocabulary"),
        .inner = inner ? integer_of(inner, "units") : 1,
        .layers = blocks_of(model),
        .context = places ? integer_of(places, "length") : window,
        .epsilon = decimals_of(norm, "epsilon"),
        .factor = 1,
        .tied = is(last, "unembedding"),
        .exact_gelu = gelu && *(const int32_t *)tr_layer_option(gelu, "approximate") == 0,
    };
    return read_attention(attention, out);
}

/* ---- comparing ---- */

/* Builds the network of the configuration. */
static tr_status build_like(struct tr_hub_match *match)
{
    const struct tr_model_input input = {.shape = match->model->input,
                                         .vocabulary = match->config.vocabulary};
    tr_config *root = NULL;
    char *text;
    TR_TRY(tr_hub_model(&match->config, "like", "", "", 1, &text));
    tr_status status = tr_config_parse(text, strlen(text), "model", &root);
    if (status == TR_OK) status = tr_model_build(root, &input, &match->like);
    tr_config_destroy(&root);
    tr_free(text);
    return status;
}

/* Layers that are left out when a network is used: their input is their output. */
static bool passes(const struct tr_layer *layer)
{
    return is(layer, "dropout") || is(layer, "stochastic_depth");
}

static int source_of(const struct tr_model *model, int layer)
{
    while (layer >= 0 && passes(&model->layers[layer])) layer = model->layers[layer].input[0];
    return layer;
}

/* Whether an option changes the outputs of the network. */
static bool counts(const struct tr_option *option)
{
    static const char *const free[] = {"dropout", "slope", "context"};
    for (size_t i = 0; i < sizeof free / sizeof free[0]; i++)
        if (strcmp(option->key, free[i]) == 0) return false;
    return option->type != TR_OPTION_NODE && option->type != TR_OPTION_STRING &&
           option->type != TR_OPTION_STRING_LIST;
}

static bool is_equal(const struct tr_option *option, const void *a, const void *b)
{
    switch (option->type) {
    case TR_OPTION_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case TR_OPTION_INT64:
        return *(const int64_t *)a == *(const int64_t *)b;
    case TR_OPTION_FLOAT:
        return *(const float *)a == *(const float *)b;
    case TR_OPTION_DOUBLE:
        return *(const double *)a == *(const double *)b;
    default: /* a choice, or a number of 32 bits */
        return *(const int32_t *)a == *(const int32_t *)b;
    }
}

static tr_status compare_options(const struct tr_hub_match *match, const struct tr_layer *ours,
                                 const struct tr_layer *like)
{
    const bool lacks = match->config.kind == TR_HUB_GPT2;
    for (int32_t i = 0; i < like->class->option_count; i++) {
        const struct tr_option *option = &like->class->options[i];
        const void *a = tr_layer_option(ours, option->key), *b = tr_layer_option(like, option->key);
        if (!counts(option) || is_equal(option, a, b)) continue;
        if (lacks && option->type == TR_OPTION_BOOL && *(const bool *)b) {
            if (strstr(option->key, "bias")) continue; /* these biases are zeros there */
        }
        return tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\": `%s` is not that of the %s in a network like %s",
                       ours->where, ours->name, option->key, like->class->name,
                       tr_hub_kind_name(match->config.kind));
    }
    return TR_OK;
}

static const char *name_of(const struct tr_model *model, int layer)
{
    return layer < 0 ? "the tokens" : model->layers[layer].name;
}

static tr_status compare(struct tr_hub_match *match, int i, const struct tr_layer *ours)
{
    const struct tr_layer *like = &match->like->layers[i];
    const char *kind = tr_hub_kind_name(match->config.kind);
    if (ours->class != like->class)
        return tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\" is a %s; a network like %s has %s there (\"%s\")",
                       ours->where, ours->name, ours->class->name, kind, like->class->name, like->name);
    match->layer[i] = (int)(ours - match->model->layers);
    for (int k = 0; k < like->input_count; k++) {
        const int wanted = like->input[k] < 0 ? -1 : match->layer[like->input[k]];
        const int source = k < ours->input_count ? source_of(match->model, ours->input[k]) : -2;
        if (source != wanted)
            return tr_fail(TR_EUNSUPPORTED,
                           "%s: layer \"%s\" takes other layers than \"%s\", its counterpart in a network "
                           "like %s: there it is %s",
                           ours->where, ours->name, like->name, kind, name_of(match->model, wanted));
    }
    return compare_options(match, ours, like);
}

static tr_status compare_all(struct tr_hub_match *match)
{
    const struct tr_model *model = match->model;
    int i = 0;
    for (int k = 0; k < model->layer_count; k++) {
        const struct tr_layer *ours = &model->layers[k];
        if (passes(ours)) continue;
        if (i == match->like->layer_count)
            return tr_fail(TR_EUNSUPPORTED,
                           "%s: layer \"%s\" comes after the last layer of a network like %s", ours->where,
                           ours->name, tr_hub_kind_name(match->config.kind));
        TR_TRY(compare(match, i++, ours));
    }
    if (i == match->like->layer_count) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "the network ends where one like %s has a %s (\"%s\")",
                   tr_hub_kind_name(match->config.kind), match->like->layers[i].class->name,
                   match->like->layers[i].name);
}

tr_status tr_hub_match(const struct tr_model *model, int64_t window, struct tr_hub_match *out)
{
    *out = (struct tr_hub_match){.model = model};
    TR_TRY(read_model(model, window, &out->config));
    TR_TRY(build_like(out));
    out->layer = tr_alloc((size_t)out->like->layer_count, sizeof *out->layer);
    return out->layer ? compare_all(out) : TR_ENOMEM;
}

void tr_hub_match_release(struct tr_hub_match *match)
{
    tr_model_destroy(&match->like);
    tr_free(match->layer);
    *match = (struct tr_hub_match){0};
}

/* ---- numbers ---- */

/* The role of a parameter in its layer; those of `attention` come in this order. */
static int number_of(const char *part)
{
    static const char *const parts[] = {"in_proj_weight", "out_proj.weight", "in_proj_bias", "out_proj.bias"};
    for (int i = 0; i < 4; i++)
        if (strcmp(part, parts[i]) == 0) return i;
    return strcmp(part, "bias") == 0;
}

/* NULL for a bias that the network lacks. */
static const float *find(const struct tr_hub_match *match, const struct tr_hub_piece *piece,
                         const float *arena)
{
    int i = 0;
    while (strcmp(match->like->layers[i].name, piece->layer) != 0) i++;
    const struct tr_layer *layer = &match->model->layers[match->layer[i]];
    const int number = number_of(piece->part);
    if (number >= layer->parameter_count) return NULL;
    return arena + match->model->parameters[layer->parameter[number]].offset;
}

void tr_hub_gather(const struct tr_hub_match *match, const struct tr_hub_piece *piece, bool across,
                   const float *arena, float *values)
{
    const int64_t rows = piece->rows, columns = piece->columns;
    const float *from = find(match, piece, arena);
    if (!from) {
        for (int64_t i = 0; i < rows; i++) values[i] = 0;
    } else if (piece->rank == 1 || piece->role == TR_HUB_TABLE) {
        memcpy(values, from + piece->first * columns, (size_t)(rows * columns) * sizeof *values);
    } else { /* [columns][total] */
        for (int64_t k = 0; k < columns; k++)
            for (int64_t i = 0; i < rows; i++)
                values[across ? k * rows + i : i * columns + k] = from[k * piece->total + piece->first + i];
    }
}
