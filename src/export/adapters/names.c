/* Which module of transformers corresponds to which part of our layers. */
#include "export/adapters/peft.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* * is the number of a block. */
struct pair {
    const char *module, *layer, *part;
};

static const struct pair gpt2_pairs[] = {
    {"transformer.h.*.attn.c_attn", "attention*", "input"},
    {"transformer.h.*.attn.c_proj", "attention*", "output"},
    {"transformer.h.*.mlp.c_fc", "up*", NULL},
    {"transformer.h.*.mlp.c_proj", "down*", NULL},
    {"lm_head", "scores", NULL},
    {0},
};

static const struct pair llama_pairs[] = {
    {"model.layers.*.self_attn.q_proj", "attention*", "query"},
    {"model.layers.*.self_attn.k_proj", "attention*", "key"},
    {"model.layers.*.self_attn.v_proj", "attention*", "value"},
    {"model.layers.*.self_attn.o_proj", "attention*", "output"},
    {"model.layers.*.mlp.gate_proj", "gate*", NULL},
    {"model.layers.*.mlp.up_proj", "up*", NULL},
    {"model.layers.*.mlp.down_proj", "down*", NULL},
    {"lm_head", "scores", NULL},
    {0},
};

/* Whether `text` is `pattern` with a number instead of its star; *number is that, -1 without a star. */
static bool fits(const char *pattern, const char *text, int64_t *number)
{
    const char *star = strchr(pattern, '*');
    *number = -1;
    if (!star) return strcmp(pattern, text) == 0;
    const size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, text, before) != 0) return false;
    const char *digits = text + before;
    const size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 6 || (length > 1 && digits[0] == '0')) return false;
    *number = strtoll(digits, NULL, 10);
    return strcmp(digits + length, star + 1) == 0;
}

static void put(const char *pattern, int64_t number, char *out, size_t size)
{
    const char *star = strchr(pattern, '*');
    if (star)
        snprintf(out, size, "%.*s%" PRId64 "%s", (int)(star - pattern), pattern, number, star + 1);
    else
        snprintf(out, size, "%s", pattern);
}

bool peft_is_known(const struct tr_model *model, bool *gpt2)
{
    bool places = false, attention = false, gate = false;
    for (int i = 0; i < model->layer_count; i++) {
        const char *name = model->layers[i].name;
        places |= strcmp(name, "places") == 0;
        attention |= strcmp(name, "attention0") == 0;
        gate |= strcmp(name, "gate0") == 0;
    }
    *gpt2 = places;
    return attention && places != gate;
}

/* The pair of a part, or NULL. */
static const struct pair *find_part(bool gpt2, const char *layer, const char *part, int64_t *number)
{
    for (const struct pair *pair = gpt2 ? gpt2_pairs : llama_pairs; pair->module; pair++)
        if (fits(pair->layer, layer, number) && !pair->part == !part &&
            (!part || strcmp(pair->part, part) == 0))
            return pair;
    return NULL;
}

static bool make_module(bool gpt2, const struct tr_layer *layer, const char *part, struct peft_module *out)
{
    int64_t number;
    const struct pair *pair = find_part(gpt2, layer->name, part, &number);
    if (!pair) return false;
    snprintf(out->layer, sizeof out->layer, "%s", layer->name);
    out->part = pair->part;
    put(pair->module, number, out->name, sizeof out->name);
    return true;
}

int peft_modules_of(bool gpt2, const struct tr_layer *layer, const struct tr_adapter *adapter,
                    struct peft_module out[3], int64_t column[3], int64_t width[3])
{
    static const char *const three[] = {"query", "key", "value"};
    struct tr_projection all[TR_LAYER_ADAPTERS];
    const char *part = adapter->beside.part;
    column[0] = 0;
    width[0] = adapter->beside.out;
    if (gpt2 || !part || strcmp(part, "input") != 0) return make_module(gpt2, layer, part, &out[0]) ? 1 : 0;
    const int count = layer->class->projections(layer, all);
    for (int n = 0; n < 3; n++) {
        if (!make_module(false, layer, three[n], &out[n])) return 0;
        for (int k = 0; k < count; k++) {
            if (!all[k].part || strcmp(all[k].part, three[n]) != 0) continue;
            column[n] = all[k].column;
            width[n] = all[k].out;
        }
    }
    return 3;
}

bool peft_find_module(const char *name, struct peft_module *out)
{
    static const struct pair *const lists[] = {gpt2_pairs, llama_pairs};
    for (int n = 0; n < 2; n++)
        for (const struct pair *pair = lists[n]; pair->module; pair++) {
            int64_t number;
            if (!fits(pair->module, name, &number)) continue;
            put(pair->layer, number, out->layer, sizeof out->layer);
            out->part = pair->part;
            snprintf(out->name, sizeof out->name, "%s", name);
            return true;
        }
    return false;
}
