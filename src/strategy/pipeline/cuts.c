#include "strategy/pipeline/cuts.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "nn/cut.h"

#include <math.h>
#include <string.h>

int pipeline_stages(const struct pipeline_options *options, int ranks)
{
    if (ranks == 1) return 1;
    if (options->stages > 0) return options->stages;
    return options->cut.count > 0 ? options->cut.count + 1 : 2;
}

/* Adds the names of all layers that may begin a stage. */
static tr_status add_allowed(const struct tr_model *model, struct tr_text *text, int *count)
{
    int *cut = tr_alloc((size_t)model->layer_count, sizeof *cut);
    if (!cut) return TR_ENOMEM;
    *count = tr_model_cuts(model, cut);
    for (int i = 0; i < *count; i++) tr_text_addf(text, "%s%s", i ? ", " : "", model->layers[cut[i]].name);
    if (*count == 0) tr_text_add(text, "none");
    tr_free(cut);
    return text->failed ? TR_ENOMEM : TR_OK;
}

static int find_layer(const struct tr_model *model, const char *name)
{
    int found = 0;
    while (found < model->layer_count && strcmp(model->layers[found].name, name) != 0) found++;
    return found;
}

static tr_status check_named(const struct tr_model *model, const struct pipeline_options *options,
                             const char *allowed)
{
    int before = 0;
    for (int i = 0; i < options->cut.count; i++) {
        const char *name = options->cut.item[i];
        int layer = find_layer(model, name);
        if (layer == model->layer_count)
            return tr_fail(TR_EINVAL, "cut names layer \"%s\", which there is not; stages may begin with: %s",
                           name, allowed);
        if (layer == 0)
            return tr_fail(
                TR_EINVAL,
                "cut names \"%s\", with which the first stage begins; later stages may begin with: %s", name,
                allowed);
        if (layer <= before)
            return tr_fail(TR_EINVAL, "cut names \"%s\" after \"%s\"; name layers in their order", name,
                           options->cut.item[i - 1]);
        tr_status status = tr_model_check_cut(model, layer);
        if (status != TR_OK)
            return tr_fail(TR_EINVAL, "no stage can begin with layer \"%s\": %s; stages may begin with: %s",
                           name, tr_error_message(), allowed);
        if (tr_model_source(model, layer - 1) == tr_model_source(model, before - 1))
            return tr_fail(TR_EINVAL, "cut leaves nothing to compute between \"%s\" and \"%s\"",
                           options->cut.item[i - 1], name);
        before = layer;
    }
    return TR_OK;
}

tr_status pipeline_check_cuts(const struct tr_model *model, const struct pipeline_options *options,
                              int stages)
{
    struct tr_text allowed = TR_TEXT_INIT;
    int count = 0;
    tr_status status = add_allowed(model, &allowed, &count);
    const char *names = allowed.bytes ? allowed.bytes : "";
    if (status == TR_OK && options->stages > 0 && options->cut.count > 0 &&
        options->cut.count != options->stages - 1)
        status =
            tr_fail(TR_EINVAL,
                    "cut names %d layers that begin stages, but stages is %d; name %d, or leave stages out",
                    options->cut.count, options->stages, options->stages - 1);
    if (status == TR_OK && stages - 1 > count)
        status = tr_fail(
            TR_EINVAL,
            "the network can be divided into %d stages at most, here are %d; stages may begin with: %s",
            count + 1, stages, names);
    if (status == TR_OK) status = check_named(model, options, names);
    tr_text_release(&allowed);
    return status;
}

void pipeline_named_cuts(const struct tr_model *model, const struct pipeline_options *options, int *bound)
{
    bound[0] = 0;
    for (int i = 0; i < options->cut.count; i++) bound[i + 1] = find_layer(model, options->cut.item[i]);
    bound[options->cut.count + 1] = model->layer_count;
}

/* best[g][n]: the cost of the most expensive of g + 1 groups over the first n, at its least; from[g][n]:
   where the last of these groups begins. */
tr_status pipeline_balance(const double *cost, int count, int groups, int *first)
{
    size_t row = (size_t)count + 1;
    double *best = tr_alloc((size_t)groups * row, sizeof *best);
    int *from = tr_alloc((size_t)groups * row, sizeof *from);
    if (!best || !from) {
        tr_free(best);
        tr_free(from);
        return TR_ENOMEM;
    }
    for (int g = 0; g < groups; g++) {
        for (int n = 0; n <= count; n++) {
            double *least = &best[(size_t)g * row + (size_t)n], last = 0;
            int *begin = &from[(size_t)g * row + (size_t)n];
            *least = INFINITY;
            *begin = 0;
            for (int k = n - 1; k >= g && n > g; k--) {
                last += cost[k];
                double others = g == 0 ? (k == 0 ? 0 : INFINITY) : best[(size_t)(g - 1) * row + (size_t)k];
                double most = others > last ? others : last;
                if (most < *least) {
                    *least = most;
                    *begin = k;
                }
            }
        }
    }
    first[groups] = count;
    for (int g = groups - 1; g >= 0; g--) first[g] = from[(size_t)g * row + (size_t)first[g + 1]];
    tr_free(best);
    tr_free(from);
    return TR_OK;
}
