/* Properties of a model, the initial values of its parameters, and their hash. */
#include "nn/model.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "base/numbers/rng.h"
#include "base/numbers/tree.h"
#include "nn/options.h"

#include <stdio.h>
#include <string.h>

int tr_model_source(const struct tr_model *model, int layer)
{
    while (layer >= 0 && model->layers[layer].alias) layer = model->layers[layer].input[0];
    return layer;
}

int64_t tr_model_longest(const struct tr_model *model)
{
    int64_t least = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer_class *class = model->layers[i].class;
        const int64_t longest = class->longest ? class->longest(&model->layers[i]) : 0;
        if (longest > 0 && (least == 0 || longest < least)) least = longest;
    }
    return least;
}

int64_t tr_model_learned(const struct tr_model *model, int layer)
{
    int64_t floats = 0;
    for (int k = 0; k < model->layers[layer].parameter_count; k++) {
        const struct tr_parameter *parameter = &model->parameters[model->layers[layer].parameter[k]];
        if (parameter->kind != TR_PARAMETER_STATISTIC) floats += parameter->count;
    }
    return floats;
}

static bool is_matrix(const struct tr_parameter *parameter)
{
    return parameter->kind == TR_PARAMETER_WEIGHT && parameter->shape.rank >= 2;
}

static bool has_matrix(const struct tr_model *model, const struct tr_layer *layer)
{
    for (int k = 0; k < layer->slot_count; k++)
        if (is_matrix(tr_model_slot(model, layer->slot[k]))) return true;
    return layer->tie.lender >= 0;
}

void tr_model_note_hidden(struct tr_model *model)
{
    for (int i = model->layer_count - 1; i >= 0; i--) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; (layer->hides || has_matrix(model, layer)) && k < layer->input_count; k++)
            if (layer->input[k] >= 0) model->layers[layer->input[k]].hides = true;
    }
}

bool tr_model_hidden_matrix(const struct tr_model *model, int parameter, int64_t *in, int64_t *out)
{
    const struct tr_parameter *it = &model->parameters[parameter];
    *in = *out = 0;
    if (!is_matrix(it)) return false;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->parameter_count; k++)
            if (layer->parameter[k] == parameter && (layer->class->looks_up || !layer->hides)) return false;
    }
    *out = it->shape.size[it->shape.rank - 1];
    *in = it->count / *out;
    return true;
}

int tr_model_consumers(const struct tr_model *model, int source)
{
    int consumers = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count && !layer->alias; k++)
            consumers += tr_model_source(model, layer->input[k]) == source;
    }
    return consumers;
}

tr_status tr_model_recompute(struct tr_model *model, const struct tr_string_list *names)
{
    const bool one = names->count == 1;
    if (names->count == 0 || (one && strcmp(names->item[0], "false") == 0)) return TR_OK;
    model->recompute = one && strcmp(names->item[0], "true") == 0;
    for (int32_t n = 0; n < names->count && !model->recompute; n++) {
        bool found = false;
        for (int i = 0; i < model->layer_count; i++) {
            if (strcmp(model->layers[i].name, names->item[n]) != 0) continue;
            found = model->layers[i].recompute = true;
        }
        if (!found)
            return tr_fail(
                TR_EINVAL,
                "train.recompute: there is no layer \"%s\"; give true, or names that trireme inspect "
                "lists",
                names->item[n]);
    }
    return TR_OK;
}

void tr_model_destroy(struct tr_model **handle)
{
    struct tr_model *model = *handle;
    if (!model) return;
    for (int i = 0; i < model->layer_count; i++) {
        tr_layer_release_options(&model->layers[i]);
        tr_free(model->layers[i].state);
    }
    tr_loss_release(&model->loss);
    tr_free(model->layers);
    if (model->base_numbers) model->destroy_base_numbers(model->base_numbers);
    tr_free(model->base);
    tr_free(model->parameters);
    tr_free(model);
    *handle = NULL;
}

bool tr_model_trained_range(const struct tr_model *model, int64_t from, int64_t *begin, int64_t *end)
{
    int i = 0;
    *begin = *end = from;
    while (i < model->parameter_count && model->parameters[i].offset < from) i++;
    for (; i < model->parameter_count && model->parameters[i].pace.frozen; i++)
        *begin = i + 1 < model->parameter_count ? model->parameters[i + 1].offset : model->arena_floats;
    while (i < model->parameter_count && !model->parameters[i].pace.frozen) i++;
    *end = i < model->parameter_count ? model->parameters[i].offset : model->arena_floats;
    return *begin < *end;
}

void tr_model_initialize_range(const struct tr_model *model, uint64_t seed, int64_t begin, int64_t end,
                               int share, int shares, float *values)
{
    tr_rng_key key = tr_rng_key_make(seed, TR_RNG_INIT);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        int64_t offset = parameter->offset, count = parameter->count;
        int64_t padded = offset + (count + TR_MODEL_GRAIN - 1) / TR_MODEL_GRAIN * TR_MODEL_GRAIN;
        int64_t first = begin > offset ? begin - offset : 0,
                last = end < offset + count ? end - offset : count;
        int64_t from = first + tr_cut(last - first, shares, share),
                to = first + tr_cut(last - first, shares, share + 1);
        if (first < last)
            tr_initializer_fill(&parameter->initializer, parameter->fan_in, parameter->fan_out, key,
                                (uint32_t)i, from, to, values + offset + from);
        if (share < shares - 1) continue;
        for (int64_t k = offset + count; k < padded; k++)
            if (k >= begin && k < end) values[k] = 0;
    }
}

void tr_model_initialize(const struct tr_model *model, uint64_t seed, int share, int shares, float *values)
{
    tr_model_initialize_range(model, seed, 0, model->arena_floats, share, shares, values);
}

static tr_status feed_hash(const struct tr_model *model, tr_parameter_feed feed, void *user, tr_sha256 *hash)
{
    if (model->base_count > 0) {
        char line[TR_SHA256_TEXT + 8];
        int length = snprintf(line, sizeof line, "base %s\n", model->base_hash);
        tr_sha256_add(hash, line, (size_t)length);
    }
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        char shape[TR_SHAPE_TEXT], line[sizeof parameter->name + TR_SHAPE_TEXT + 2];
        int length =
            snprintf(line, sizeof line, "%s %s\n", parameter->name, tr_shape_text(&parameter->shape, shape));
        tr_sha256_add(hash, line, (size_t)length);
        TR_TRY(feed(user, parameter, hash));
    }
    return TR_OK;
}

tr_status tr_model_hash_fed(const struct tr_model *model, tr_parameter_feed feed, void *user,
                            char hex[TR_SHA256_TEXT])
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = feed_hash(model, feed, user, hash);
    if (status == TR_OK) return tr_sha256_end(&hash, hex);
    tr_sha256_destroy(&hash);
    return status;
}

static tr_status feed_from_arena(void *user, const struct tr_parameter *parameter, tr_sha256 *hash)
{
    const float *values = user;
    tr_sha256_add(hash, values + parameter->offset, (size_t)parameter->count * sizeof *values);
    return TR_OK;
}

tr_status tr_model_hash(const struct tr_model *model, const float *values, char hex[TR_SHA256_TEXT])
{
    return tr_model_hash_fed(model, feed_from_arena, (void *)(uintptr_t)values, hex);
}
