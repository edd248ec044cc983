#include "train/observe/profile.h"

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

static bool computes(enum tr_activity activity)
{
    return activity == TR_ACTIVITY_FORWARD || activity == TR_ACTIVITY_BACKWARD ||
           activity == TR_ACTIVITY_UPDATE;
}

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

static void add_seconds(struct layer_sums *sums, const struct tr_span_total *total)
{
    double seconds = (double)total->own * 1e-9;
    if (total->activity == TR_ACTIVITY_FORWARD)
        sums->forward += seconds;
    else
        sums->backward += seconds;
}

static void add_work(struct layer_sums *sums, const struct tr_span_total *total)
{
    if (total->activity == TR_ACTIVITY_FORWARD) {
        sums->calls += (double)total->count;
        sums->forward_operations += total->work;
        sums->bytes = (double)total->bytes;
    } else {
        sums->backward_operations += total->work;
    }
}

/* For the thread that runs the trainer. Other threads work beside it. Evaluations are separate causes,
   with everything in them. With `asks`, it only requests computation of a device that reports its own
   times. */
static void add_main_lane(tr_lane *lane, const struct tr_model *model, int ranks, bool asks, double *block)
{
    int count;
    const struct tr_span_total *totals = tr_lane_totals(lane, &count);
    for (int i = 0; i < count; i++) {
        const struct tr_span_total *total = &totals[i];
        bool other = asks && computes(total->activity);
        block[other ? TR_CAUSE_OTHER : causes[total->activity]] += (double)total->own * 1e-9;
        if (total->activity == TR_ACTIVITY_WAITING && total->about >= 0 && total->about < ranks)
            block[TR_CAUSES + total->about] += (double)total->own * 1e-9;
        if (total->activity != TR_ACTIVITY_FORWARD && total->activity != TR_ACTIVITY_BACKWARD) continue;
        int layer = find_layer(model, tr_lane_text(lane, total->name));
        if (layer < 0) continue;
        add_work(&layers_of(block, ranks)[layer], total);
        if (!asks) add_seconds(&layers_of(block, ranks)[layer], total);
    }
}

/* For a device that reports its own times: it computed, the thread waited for ranks, or something else. */
static void add_device_lane(tr_lane *lane, const struct tr_model *model, int ranks, double *block)
{
    int count;
    const struct tr_span_total *totals = tr_lane_totals(lane, &count);
    for (int i = 0; i < count; i++) {
        const struct tr_span_total *total = &totals[i];
        if (!computes(total->activity)) continue;
        block[causes[total->activity]] += (double)total->own * 1e-9;
        block[TR_CAUSE_OTHER] -= (double)total->own * 1e-9;
        if (total->activity != TR_ACTIVITY_FORWARD && total->activity != TR_ACTIVITY_BACKWARD) continue;
        int layer = find_layer(model, tr_lane_text(lane, total->name));
        if (layer >= 0) add_seconds(&layers_of(block, ranks)[layer], total);
    }
    if (block[TR_CAUSE_OTHER] < 0)
        block[TR_CAUSE_OTHER] = 0; /* it computed while the thread waited for ranks */
}

static void add_lanes(tr_timeline *timeline, const struct tr_model *model, const tr_device *device, int ranks,
                      double *block)
{
    for (int device_turn = 0; device_turn < 2;
         device_turn++) /* the device's time is subtracted from the other's */
        for (int i = 0; i < tr_timeline_lanes(timeline); i++) {
            tr_lane *lane = tr_timeline_lane(timeline, i);
            if (!device_turn && strcmp(tr_lane_name(lane), TR_PROFILE_LANE) == 0)
                add_main_lane(lane, model, ranks, device->timed, block);
            if (device_turn && device->timed && strcmp(tr_lane_name(lane), device->name) == 0)
                add_device_lane(lane, model, ranks, block);
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
    if (status == TR_OK) add_lanes(timeline, model, device, ranks, blocks + (size_t)rank * size);
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
