#include "nn/adapters.h"

#include "base/fail.h"
#include "base/text/text.h"
#include "nn/layers/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LORA };

static const struct tr_choice kinds[] = {
    {"lora", LORA, "products of low rank (Hu et al. 2021)"},
    {0},
};

#define AT(field) offsetof(struct tr_adapters, field)
const struct tr_option tr_adapters_options[] = {
    {.key = "kind",
     .type = TR_OPTION_CHOICE,
     .offset = AT(kind),
     .fallback = "lora",
     .choices = kinds,
     .help = "kind of adapter"},
    {.key = "rank",
     .type = TR_OPTION_INT64,
     .offset = AT(rank),
     .fallback = "8",
     .least = 1,
     .most = 1 << 16,
     .help = "inner width of an adapter, at most that of the weights beside it"},
    {.key = "alpha",
     .type = TR_OPTION_FLOAT,
     .offset = AT(alpha),
     .fallback = "16",
     .least = 0,
     .most = 1e6,
     .help = "the output of an adapter is scaled by `alpha` / `rank`",
     .flags = TR_OPTION_ABOVE_LEAST},
    {.key = "dropout",
     .type = TR_OPTION_FLOAT,
     .offset = AT(dropout),
     .fallback = "0",
     .least = 0,
     .most = 0.9999,
     .help = "fraction of an adapter's input that is dropped in training"},
    {.key = "on",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(on),
     .fallback = "",
     .help =
         "layers that get adapters, by kind (`attention`, `dense`) or name; parts of `attention`: `input` "
         "(queries, keys and values as one product), `query`, `key`, `value`, `output`, by default "
         "`input` and `output`. Empty: all `attention` and `dense`"},
    {.key = "train",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(train),
     .fallback = "",
     .help = "names of layers that are trained as a whole, such as a new head"},
    {.key = "base",
     .type = TR_OPTION_STRING,
     .offset = AT(base),
     .fallback = "",
     .help = "run or checkpoint whose parameters are the base; `trireme train --from` sets it"},
    {.key = "base_hash",
     .type = TR_OPTION_STRING,
     .offset = AT(base_hash),
     .fallback = "",
     .help = "hash of the base that a run began with, which a checkpoint keeps; empty: any",
     .flags = TR_OPTION_QUIET},
};
#undef AT
const int32_t tr_adapters_option_count = TR_OPTION_COUNT(tr_adapters_options);

tr_status tr_adapters_read(const tr_config *root, struct tr_adapters *out, bool *has)
{
    const tr_config *node = tr_config_get(root, "adapters");
    *has = node && tr_config_kind(node) != TR_CONFIG_NULL;
    if (!*has) return TR_OK;
    *out = (struct tr_adapters){0};
    tr_status status = tr_options_defaults(tr_adapters_options, tr_adapters_option_count, out);
    if (status == TR_OK)
        status = tr_options_read(tr_adapters_options, tr_adapters_option_count, node, "adapters", out);
    if (status != TR_OK) tr_adapters_release(out);
    *has = status == TR_OK;
    return status;
}

void tr_adapters_release(struct tr_adapters *adapters)
{
    tr_options_release(tr_adapters_options, tr_adapters_option_count, adapters);
}

/* ---- names ---- */

/* The part after the point of "attention.query", or NULL. */
static const char *part_of(const char *item)
{
    const char *point = strchr(item, '.');
    return point ? point + 1 : NULL;
}

/* Whether the item, up to its point, is the name of the layer (`exact`) or of its class. */
static bool names_layer(const char *item, const struct tr_layer *layer, bool *exact)
{
    const size_t length = strcspn(item, ".");
    *exact = strlen(layer->name) == length && strncmp(item, layer->name, length) == 0;
    const bool kind = strlen(layer->class->name) == length && strncmp(item, layer->class->name, length) == 0;
    return *exact || kind;
}

bool tr_adapters_train(const struct tr_adapters *adapters, const struct tr_layer *layer)
{
    const size_t length =
        strcspn(layer->name, "."); /* a direction of a bidirectional layer is a part of the layer */
    for (int32_t i = 0; i < adapters->train.count; i++)
        if (strlen(adapters->train.item[i]) == length &&
            strncmp(adapters->train.item[i], layer->name, length) == 0)
            return true;
    return false;
}

/* The default list: used where there are no items. */
static const char *const everywhere[] = {"attention", "dense"};

static int32_t places(const struct tr_adapters *adapters)
{
    return adapters->on.count > 0 ? adapters->on.count : (int32_t)(sizeof everywhere / sizeof *everywhere);
}

static const char *place(const struct tr_adapters *adapters, int32_t i)
{
    return adapters->on.count > 0 ? adapters->on.item[i] : everywhere[i];
}

/* Whether the section asks for adapters beside a projection of the layer. */
static bool is_asked(const struct tr_adapters *adapters, const struct tr_layer *layer,
                     const struct tr_projection *beside)
{
    for (int32_t i = 0; i < places(adapters); i++) {
        bool exact;
        const char *item = place(adapters, i), *part = part_of(item);
        if (!names_layer(item, layer, &exact)) continue;
        if (part ? beside->part && strcmp(part, beside->part) == 0 : beside->asked) return true;
    }
    return false;
}

static tr_status fail_unmatched(const struct tr_model *model, const char *list, const char *item)
{
    const char *names[64];
    int count = 0;
    for (int i = 0; i < model->layer_count && count + 2 < 64; i++) {
        if (list[0] == 'o' && !model->layers[i].class->projections) continue;
        names[count++] = model->layers[i].name;
        if (list[0] == 'o') names[count++] = model->layers[i].class->name;
    }
    const char *nearest = tr_text_nearest(item, names, count);
    return tr_fail(TR_EINVAL, "adapters.%s: no layer is called \"%s\"%s%s%s%s", list, item,
                   list[0] == 'o' ? ", nor is of such a kind" : "", nearest ? ". Did you mean \"" : "",
                   nearest ? nearest : "", nearest ? "\"?" : "; look at trireme inspect");
}

static tr_status check_place(const struct tr_adapters *adapters, const struct tr_model *model,
                             const char *item)
{
    bool found = false;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        bool exact;
        if (!names_layer(item, layer, &exact)) continue;
        found = true;
        if (!layer->class->projections)
            return tr_fail(TR_EINVAL,
                           "adapters.on: \"%s\" is of kind %s, which cannot have adapters; name layers "
                           "of kind attention or dense",
                           item, layer->class->name);
        if (exact && tr_adapters_train(adapters, layer))
            return tr_fail(TR_EINVAL, "adapters: layer \"%s\" is in `on` and in `train`; leave it in one",
                           layer->name);
        struct tr_projection beside[TR_LAYER_ADAPTERS];
        const char *part = part_of(item);
        bool known = !part;
        for (int k = layer->class->projections(layer, beside) - 1; k >= 0; k--)
            known |= part && beside[k].part && strcmp(part, beside[k].part) == 0;
        if (!known)
            return tr_fail(TR_EINVAL, "adapters.on: %s has no part \"%s\"; %s", layer->class->name, part,
                           beside[0].part ? "parts are input, query, key, value and output"
                                          : "leave out the point and what follows");
    }
    return found ? TR_OK : fail_unmatched(model, "on", item);
}

tr_status tr_adapters_check(const struct tr_adapters *adapters, const struct tr_model *model)
{
    for (int32_t i = 0; i < adapters->on.count; i++)
        TR_TRY(check_place(adapters, model, adapters->on.item[i]));
    for (int32_t i = 0; i < adapters->train.count; i++) {
        bool found = false;
        for (int k = 0; k < model->layer_count; k++)
            found |= strcmp(model->layers[k].name, adapters->train.item[i]) == 0;
        if (!found) return fail_unmatched(model, "train", adapters->train.item[i]);
    }
    bool any = false;
    for (int k = 0; k < model->layer_count && adapters->on.count == 0; k++)
        any |= model->layers[k].class->projections != NULL;
    if (adapters->on.count == 0 && !any)
        return tr_fail(
            TR_EINVAL,
            "adapters: the network has no layer of kind attention or dense, which alone can have adapters");
    return TR_OK;
}

/* ---- building ---- */

static tr_status declare(const struct tr_adapters *adapters, const struct tr_projection *beside,
                         struct tr_layer *layer, struct tr_builder *builder)
{
    const int64_t rank = adapters->rank, most = beside->in < beside->out ? beside->in : beside->out;
    struct tr_adapter *adapter = &layer->adapters.item[layer->adapters.count];
    char name[2][32];
    if (rank > most)
        return tr_fail(TR_EINVAL,
                       "adapters.rank is %" PRId64 ", and the %" PRId64 " x %" PRId64
                       " weights beside one have a rank of at most %" PRId64 "; choose less",
                       rank, beside->in, beside->out, most);
    snprintf(name[0], sizeof name[0], "%s%slora_a", beside->part ? beside->part : "",
             beside->part ? "_" : "");
    snprintf(name[1], sizeof name[1], "%s%slora_b", beside->part ? beside->part : "",
             beside->part ? "_" : "");
    const double limit = 1 / sqrt((double)beside->in);
    const struct tr_initializer uniform = {.kind = TR_INIT_UNIFORM, .low = -limit, .high = limit},
                                zeros = {.kind = TR_INIT_ZEROS};
    const struct tr_shape down = {2, {beside->in, rank}, false}, up = {2, {rank, beside->out}, false};
    *adapter = (struct tr_adapter){*beside, layer->slot_count, layer->adapters.count * rank};
    layer->adapters.count++;
    TR_TRY(
        tr_builder_parameter(builder, layer, name[0], TR_PARAMETER_WEIGHT, down, &uniform, beside->in, rank));
    layer->flops += 2 * rank * (beside->in + beside->out);
    return tr_builder_parameter(builder, layer, name[1], TR_PARAMETER_WEIGHT, up, &zeros, rank, beside->out);
}

/* Temporary floats of an adapter for each row: forward, its input after dropout, then its product, widened
   to all columns; backward, its part of the gradient, and the gradient of its input. */
static void measure(const struct tr_adapter *adapter, int64_t *forward, int64_t *backward)
{
    const struct tr_projection *beside = &adapter->beside;
    const bool narrow = beside->out < beside->full;
    int64_t there = beside->in > beside->out ? beside->in : beside->out, back = beside->in;
    if (narrow) {
        there += beside->full;
        back += beside->out;
    }
    if (there > *forward) *forward = there;
    if (back > *backward) *backward = back;
}

tr_status tr_adapters_add(const struct tr_adapters *adapters, struct tr_layer *layer,
                          struct tr_builder *builder)
{
    struct tr_projection beside[TR_LAYER_ADAPTERS];
    if (!layer->class->projections || tr_adapters_train(adapters, layer)) return TR_OK;
    const int count = layer->class->projections(layer, beside);
    int64_t forward = 0, backward = 0;
    for (int k = 0; k < count; k++)
        if (is_asked(adapters, layer, &beside[k])) TR_TRY(declare(adapters, &beside[k], layer, builder));
    if (layer->adapters.count == 0) return TR_OK;
    layer->adapters.rank = adapters->rank;
    layer->adapters.scale = adapters->alpha / (float)adapters->rank;
    layer->adapters.dropout = adapters->dropout;
    for (int k = 0; k < layer->adapters.count; k++) measure(&layer->adapters.item[k], &forward, &backward);
    layer->adapters.hidden = layer->buffer_count;
    const int64_t size = (int64_t)sizeof(float), hidden = layer->adapters.count * adapters->rank;
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, hidden * size, 0, false});
    layer->adapters.forward = layer->buffer_count;
    tr_layer_buffer(layer,
                    (struct tr_buffer){.unit = TR_PER_ROW, .bytes = forward * size, .forward_only = true});
    layer->adapters.backward = layer->buffer_count;
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, (backward + adapters->rank) * size, 0, true});
    return TR_OK;
}
