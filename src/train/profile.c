#include "train/profile.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "strategy/strategy.h"

#include <string.h>

#define PEAK_SECONDS 0.1

/* The sums of a rank, as they travel: all doubles, one block for each rank. */
struct layer_sums {
    double calls, forward, backward, forward_operations, backward_operations, bytes;
};

static const enum tr_cause causes[TR_ACTIVITIES] = {
    [TR_ACTIVITY_STEP] = TR_CAUSE_OTHER,
    [TR_ACTIVITY_INPUT] = TR_CAUSE_INPUT,
    [TR_ACTIVITY_FORWARD] = TR_CAUSE_FORWARD,
    [TR_ACTIVITY_BACKWARD] = TR_CAUSE_BACKWARD,
    [TR_ACTIVITY_COMMUNICATION] = TR_CAUSE_COMMUNICATION,
    [TR_ACTIVITY_WAITING] = TR_CAUSE_WAITING,
    [TR_ACTIVITY_UPDATE] = TR_CAUSE_UPDATE,
    [TR_ACTIVITY_EVALUATION] = TR_CAUSE_EVALUATION,
    [TR_ACTIVITY_CHECKPOINT] = TR_CAUSE_CHECKPOINT,
};

/* The doubles of a rank's block: causes, how long it waited for each rank, and the layers. */
static size_t block_size(const struct tr_model *model, int ranks)
{
    return TR_CAUSES + (size_t)ranks +
           (size_t)model->layer_count * (sizeof(struct layer_sums) / sizeof(double));
}

static struct layer_sums *layers_of(double *block, int ranks)
{
    return (struct layer_sums *)(block + TR_CAUSES + ranks);
}

static int find_layer(const struct tr_model *model, const char *name)
{
    for (int i = 0; i < model->layer_count; i++)
        if (strcmp(model->layers[i].name, name) == 0) return i;
    return -1;
}

static void add_layer(struct layer_sums *sums, const struct tr_span_total *total)
{
    double seconds = (double)total->own * 1e-9;
    if (total->activity == TR_ACTIVITY_FORWARD) {
        sums->calls += (double)total->count;
        sums->forward += seconds;
        sums->forward_operations += total->work;
        sums->bytes = (double)total->bytes;
    } else {
        sums->backward += seconds;
        sums->backward_operations += total->work;
    }
}

/* Only the main lane counts: other threads work beside it. Evaluations are causes of their own, whatever they
   do inside. */
static void add_lane(tr_lane *lane, const struct tr_model *model, int ranks, double *block)
{
    int count;
    const struct tr_span_total *totals = tr_lane_totals(lane, &count);
    for (int i = 0; i < count; i++) {
        const struct tr_span_total *total = &totals[i];
        block[causes[total->activity]] += (double)total->own * 1e-9;
        if (total->activity == TR_ACTIVITY_WAITING && total->about >= 0 && total->about < ranks)
            block[TR_CAUSES + total->about] += (double)total->own * 1e-9;
        if (total->activity != TR_ACTIVITY_FORWARD && total->activity != TR_ACTIVITY_BACKWARD) continue;
        int layer = find_layer(model, tr_lane_text(lane, total->name));
        if (layer >= 0) add_layer(&layers_of(block, ranks)[layer], total);
    }
}

static void fill_ranks(double *blocks, size_t size, struct tr_train_profile *out)
{
    for (int r = 0; r < out->ranks; r++) {
        const double *block = blocks + (size_t)r * size;
        memcpy(out->rank[r].seconds, block, sizeof out->rank[r].seconds);
        for (int other = 0; other < out->ranks; other++) out->rank[other].awaited += block[TR_CAUSES + other];
    }
}

static void fill_layers(double *blocks, size_t size, const struct tr_model *model,
                        struct tr_train_profile *out)
{
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        struct tr_profile_layer line = {.name = layer->name};
        for (int r = 0; r < out->ranks; r++) {
            const struct layer_sums *sums = &layers_of(blocks + (size_t)r * size, out->ranks)[i];
            line.calls += (int64_t)sums->calls;
            line.forward_seconds += sums->forward;
            line.backward_seconds += sums->backward;
            line.forward_operations += sums->forward_operations;
            line.backward_operations += sums->backward_operations;
            if ((int64_t)sums->bytes > line.bytes) line.bytes = (int64_t)sums->bytes;
        }
        for (int k = 0; k < layer->parameter_count; k++)
            line.parameters += model->parameters[layer->parameter[k]].count;
        if (line.calls > 0) out->layers[out->layer_count++] = line;
    }
}

tr_status tr_profile_make(tr_timeline *timeline, const struct tr_model *model, tr_device *device,
                          tr_comm *comm, struct tr_train_profile *out)
{
    int rank = comm ? tr_comm_rank(comm) : 0, ranks = comm ? tr_comm_size(comm) : 1;
    size_t size = block_size(model, ranks);
    *out = (struct tr_train_profile){.ranks = ranks};
    double *blocks = tr_alloc_zero((size_t)ranks * size, sizeof *blocks);
    out->rank = tr_alloc_zero((size_t)ranks, sizeof *out->rank);
    out->layers = tr_alloc_zero((size_t)model->layer_count, sizeof *out->layers);
    tr_status status = blocks && out->rank && out->layers ? TR_OK : TR_ENOMEM;
    for (int i = 0; status == TR_OK && i < tr_timeline_lanes(timeline); i++) {
        tr_lane *lane = tr_timeline_lane(timeline, i);
        if (strcmp(tr_lane_name(lane), TR_PROFILE_LANE) == 0)
            add_lane(lane, model, ranks, blocks + (size_t)rank * size);
    }
    if (status == TR_OK && comm) status = tr_comm_exchange(comm, blocks, size * sizeof *blocks, "profile");
    if (status == TR_OK) {
        fill_ranks(blocks, size, out);
        fill_layers(blocks, size, model, out);
        out->peak = tr_device_peak(device, PEAK_SECONDS);
    } else {
        tr_profile_release(out);
    }
    tr_free(blocks);
    return status;
}

void tr_profile_release(struct tr_train_profile *profile)
{
    tr_free(profile->layers);
    tr_free(profile->rank);
    *profile = (struct tr_train_profile){0};
}
