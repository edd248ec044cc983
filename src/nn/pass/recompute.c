/* Which layers of a pass are computed again in backward, so that the data of their forward need not be
 * kept (Chen et al. 2016). They form groups of neighbouring layers. None of a group's data outlives
 * forward, and directly before the first layer whose backward reads data of the group, its layers run
 * forward again. The bits are the same: operations are exact, masks are functions of the step, and
 * statistics of a batch are overwritten with the same values.
 *
 * Invariant: a fusion lies entirely within a group or outside of all groups.
 */
#include "nn/pass/internal.h"

#include "base/fail.h"
#include "nn/cut.h"

/* The layer whose backward runs that of a layer, with its fusion. */
static int head_of(const struct tr_pass *pass, int i)
{
    return pass->layer[i].fusion.head;
}

/* Whether backward of a layer reads its inputs, or data that a fusion before it left. */
static bool reads_input(const struct tr_layer *layer)
{
    return layer->keeps_input || layer->class->fusing.applies_gelu_gradient;
}

/* A fusion is kept if any part of it would be kept. */
static void keep_split_fusions(struct tr_pass *pass)
{
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        const struct tr_fusion *fusion = &pass->layer[i].fusion;
        bool all = true;
        for (int k = fusion->head; k <= fusion->end; k++) all &= pass->layer[k].again;
        for (int k = fusion->head; k <= fusion->end && !all; k++) pass->layer[k].again = false;
    }
}

/* The layer before whose backward the group has to be there, -1 if none reads it. Groups after it are done.
 */
static int find_trigger(const struct tr_pass *pass, int first, int end)
{
    const struct tr_model *model = pass->model;
    int trigger = -1;
    for (int i = first; i < end; i++)
        if (pass->layer[i].wants && !model->layers[i].alias && head_of(pass, i) > trigger)
            trigger = head_of(pass, i);
    for (int i = end; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        bool takes = false;
        for (int k = 0; k < layer->input_count && !layer->alias; k++) {
            const int source = tr_model_source(model, layer->input[k]);
            takes |= source >= first && source < end;
        }
        if (!takes) continue;
        const int group = pass->layer[i].group;
        const int reader = group >= 0                                   ? pass->group[group].trigger
                           : pass->layer[i].wants && reads_input(layer) ? head_of(pass, i)
                                                                        : -1;
        if (reader > trigger) trigger = reader;
    }
    return trigger;
}

/* From the last to the first, so that the groups that depend on one are known; group 0 is the last one. */
static void form_groups(struct tr_pass *pass)
{
    pass->group_count = 0;
    for (int i = 0; i < pass->model->layer_count; i++) pass->layer[i].group = -1;
    for (int end = pass->limits.end_layer; end > pass->limits.first_layer;) {
        int first = end;
        while (first > pass->limits.first_layer && pass->layer[first - 1].again) first--;
        if (first == end) {
            end--;
            continue;
        }
        pass->group[pass->group_count] = (struct pass_group){first, end, find_trigger(pass, first, end)};
        for (int i = first; i < end; i++) pass->layer[i].group = pass->group_count;
        pass->group_count++;
        end = first;
    }
}

void pass_recompute_named(struct tr_pass *pass)
{
    for (int i = 0; i < pass->model->layer_count; i++)
        pass->layer[i].again = pass->limits.training && pass_has(pass, i) &&
                               pass->model->layers[i].recompute && !pass->model->layers[i].fed &&
                               i != pass->exit && (!pass_is_last(pass) || i + 1 < pass->model->layer_count);
    keep_split_fusions(pass);
    form_groups(pass);
}

/* Bytes that a layer's forward leaves to backward, for all rows. */
static int64_t weight_of(const struct tr_pass *pass, int i)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    int64_t bytes = layer->alias || pass_is_within(pass, i) ? 0 : pass_output_bytes(&pass->limits, layer);
    for (int k = 0; k < layer->buffer_count; k++)
        if (!layer->buffer[k].backward_only && !layer->buffer[k].forward_only)
            bytes += pass_buffer_bytes(&pass->limits, layer, k);
    return bytes;
}

int64_t pass_recompute_in_pieces(struct tr_pass *pass, const int *cut, int cuts, int64_t least)
{
    const struct tr_model *model = pass->model;
    int64_t bytes = 0, all = 0;
    int begin = pass->limits.first_layer;
    for (int i = 0; i < model->layer_count; i++) pass->layer[i].again = false;
    for (int n = 0, i = begin; i < pass->limits.end_layer; i++) {
        bytes += weight_of(pass, i);
        while (n < cuts && cut[n] < i + 1) n++;
        const bool ends = n < cuts && cut[n] == i + 1;
        all += weight_of(pass, i);
        if (!ends || bytes < least) continue;
        const int kept = tr_model_source(model, i);
        for (int k = begin; k <= i; k++)
            pass->layer[k].again = k != kept && k != pass->exit && !model->layers[k].fed;
        begin = i + 1;
        bytes = 0;
    }
    /* The last group is needed at once where the network ends here; in a pipeline it waits. */
    for (int k = begin; k < pass->limits.end_layer && !pass_is_last(pass); k++)
        pass->layer[k].again = k != pass->exit && !model->layers[k].fed;
    keep_split_fusions(pass);
    form_groups(pass);
    return all;
}

tr_status pass_recompute_before(struct tr_pass *pass, const struct tr_pass_batch *batch, int layer,
                                const float *parameters, float *gradients, int64_t stride)
{
    const tr_pass_observer observer = pass->observer; /* it has seen them in forward */
    tr_status status = TR_OK;
    pass->observer = NULL;
    for (int g = pass->group_count - 1; g >= 0 && status == TR_OK; g--) {
        const struct pass_group *group = &pass->group[g];
        if (group->trigger != layer) continue;
        for (int i = group->first; i < group->end; i++) pass_load_set(pass, i, 1);
        status = pass_run_forward(pass, batch, group->first, group->end, parameters, gradients, stride);
    }
    pass->observer = observer;
    return status;
}
