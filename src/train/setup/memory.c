#include "train/setup/memory.h"

#include "base/alloc.h"
#include "base/text/counted.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "job/step/gradient.h"
#include "job/step/lesson.h"
#include "job/feed/augment.h"
#include "job/feed/resident.h"
#include "optim/optimizer.h"
#include "strategy/strategy.h"

#include <stdio.h>
#include <string.h>

/* ---- what one rank takes ---- */

static int64_t sum(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

/* Arenas of moments and averages. */
static int state_arenas(const struct tr_job *job)
{
    unsigned states = 0;
    for (int i = 0; i < job->model->parameter_count; i++)
        states |= tr_optimizer_states(&job->optimizer, job->model->parameters[i].kind);
    return __builtin_popcount(states & TR_STATE_ANY);
}

/* Slots and pass of a rank that computes its part of the microbatches, with the shortest possible
   sequences. */
static tr_status gradient_memory(const struct tr_job *job, int ranks, int64_t *bytes)
{
    int64_t microbatches = job->train.microbatches, each = microbatches / ranks;
    struct tr_gradient_part part = {.end = each > 0 ? each : 1};
    int64_t rows = job->train.batch / microbatches * part.end;
    struct tr_gradient_plan plan;
    size_t pass = 0;
    tr_gradient_plan(job, &part, rows, job->features == TR_FEATURE_TOKENS ? rows : 0,
                     job->parts.second[0] ? rows : 0, &plan);
    TR_TRY(tr_pass_memory(NULL, job->model, &plan.limits, &pass));
    int64_t lesson;
    TR_TRY(tr_lesson_expect(job, &plan.limits, &lesson));
    lesson = sum(lesson, tr_augmenter_expect(job, plan.limits.examples));
    *bytes = sum(sum((int64_t)pass, lesson), plan.stride * plan.slots * (int64_t)sizeof(float));
    return TR_OK;
}

tr_status tr_train_expect_memory(const struct tr_job *job, int ranks, struct tr_train_expected *out)
{
    int64_t arena = job->model->arena_floats * (int64_t)sizeof(float), gradient = 0, spared = 0;
    int64_t states = arena * state_arenas(job), scratch = tr_variables_scratch(job->model, &job->optimizer);
    enum tr_strategy_keeping keeping;
    TR_TRY(tr_strategy_keeping(job, &keeping));
    *out = (struct tr_train_expected){.states = (arena + states) / ranks + scratch};
    if (ranks > 1 && keeping == TR_KEEP_PARTS) return TR_OK;
    TR_TRY(gradient_memory(job, ranks, &gradient));
    if (ranks == 1) TR_TRY(tr_strategy_spares(job, &spared));
    *out = (struct tr_train_expected){gradient - spared, states + scratch, arena};
    return TR_OK;
}

tr_status tr_train_evaluation_memory(tr_device *device, const struct tr_job *job, int64_t *bytes)
{
    *bytes = 0;
    for (int set = TR_SET_VALIDATION; set < TR_SETS; set++) {
        if (!job->source[set]) continue;
        const struct tr_source_info *info = tr_source_info(job->source[set]);
        int64_t rows = job->train.evaluate_batch < info->count ? job->train.evaluate_batch : info->count;
        struct tr_pass_limits limits = {.examples = rows,
                                        .tokens = job->features == TR_FEATURE_TOKENS ? rows : 0,
                                        .second_tokens = job->parts.second[0] ? rows : 0,
                                        .microbatches = 1,
                                        .end_layer = job->model->layer_count};
        size_t pass;
        int64_t kept;
        TR_TRY(tr_pass_memory(NULL, job->model, &limits, &pass));
        TR_TRY(tr_resident_expect(device, job->source[set], &kept));
        *bytes = sum(*bytes, sum((int64_t)pass, kept));
    }
    return TR_OK;
}

int64_t tr_train_data_memory(const struct tr_job *job)
{
    int64_t bytes = 0;
    for (int set = 0; set < TR_SETS; set++)
        if (job->source[set]) bytes = sum(bytes, job->source[set]->unpacked);
    return bytes;
}

/* ---- where it lies ---- */

void tr_train_demand_add(struct tr_train_demand *demand, const tr_device *device, int64_t bytes)
{
    int64_t memory = tr_device_memory(device);
    if (memory == 0) {
        demand->own = sum(demand->own, bytes);
        return;
    }
    struct tr_train_on *on = demand->on;
    if (on->bytes > 0 && strcmp(on->device, device->name) != 0) on++;
    snprintf(on->device, sizeof on->device, "%s", device->name);
    on->bytes = sum(on->bytes, bytes);
    on->memory = memory;
}

/* ---- what a host has to give ---- */

/* The message between ranks. */
struct notice {
    struct tr_train_demand demand;
    struct tr_memory_room room;
};

static void end_strings(struct notice *notice)
{
    notice->room.where[sizeof notice->room.where - 1] = '\0';
    for (int i = 0; i < 2; i++) notice->demand.on[i].device[sizeof notice->demand.on[i].device - 1] = '\0';
}

static void add_rank(struct tr_train_memory *host, const struct notice *notice, int64_t *shared)
{
    host->ranks = sum(host->ranks, notice->demand.own);
    if (notice->demand.shared > *shared) *shared = notice->demand.shared;
    if (notice->demand.data > host->data) host->data = notice->demand.data;
    host->processes++;
}

static tr_status refuse(const struct tr_train_memory *host, const char *name, const char *where)
{
    char whole[TR_TEXT_NUMBER_SIZE], data[TR_TEXT_NUMBER_SIZE], ranks[TR_TEXT_NUMBER_SIZE],
        room[TR_TEXT_NUMBER_SIZE], processes[TR_COUNTED_SIZE];
    return tr_fail(
        TR_ENOMEM,
        "the run takes %s of memory%s%s (%s for parameters, moments and passes of %s, %s "
        "for data), %s has %s free; make the network or the batch smaller, take fewer processes, or "
        "give `no_memory_check`",
        tr_text_from_bytes(sum(host->ranks, host->data), whole), *name ? " on host " : "", name,
        tr_text_from_bytes(host->ranks, ranks), tr_counted(host->processes, "process", processes),
        tr_text_from_bytes(host->data, data), where, tr_text_from_bytes(host->free, room));
}

static tr_status refuse_device(const struct tr_train_on *on, int64_t bytes, int processes, const char *name)
{
    char whole[TR_TEXT_NUMBER_SIZE], memory[TR_TEXT_NUMBER_SIZE], counted[TR_COUNTED_SIZE];
    return tr_fail(TR_ENOMEM,
                   "the run takes %s of the memory of %s%s%s (parameters, moments and passes of %s, "
                   "data that are kept there), which has %s; compute fewer examples at a time "
                   "(train.pass), make the network smaller, take more devices, or give `no_memory_check`",
                   tr_text_from_bytes(bytes, whole), on->device, *name ? " on host " : "", name,
                   tr_counted(processes, "process", counted), tr_text_from_bytes(on->memory, memory));
}

/* Memory of a device of r that the ranks of r's host take. */
static int64_t taken_of(tr_comm *comm, const struct notice *notices, int size, int r, const char *device,
                        int *processes)
{
    int64_t bytes = 0;
    *processes = 0;
    for (int q = 0; q < size; q++) {
        if (comm && tr_comm_host_of(comm, q) != tr_comm_host_of(comm, r)) continue;
        for (int i = 0; i < 2; i++) {
            const struct tr_train_on *on = &notices[q].demand.on[i];
            if (on->bytes <= 0 || strcmp(on->device, device) != 0) continue;
            bytes = sum(bytes, on->bytes);
            ++*processes;
        }
    }
    return bytes;
}

/* Of a host whose first rank is `first`. */
static tr_status admit_devices(tr_comm *comm, const struct notice *notices, int size, int first,
                               const char *name)
{
    for (int r = first; r < size; r++) {
        if (comm && tr_comm_host_of(comm, r) != tr_comm_host_of(comm, first)) continue;
        for (int i = 0; i < 2; i++) {
            const struct tr_train_on *on = &notices[r].demand.on[i];
            int processes;
            if (on->bytes <= 0) continue;
            int64_t bytes = taken_of(comm, notices, size, r, on->device, &processes);
            if (bytes > on->memory) return refuse_device(on, bytes, processes, name);
        }
    }
    return TR_OK;
}

tr_status tr_train_admit_memory(tr_comm *comm, const struct tr_train_demand *demand,
                                const struct tr_memory_room *room, bool check, struct tr_train_memory *out)
{
    int size = comm ? tr_comm_size(comm) : 1, hosts = comm ? tr_comm_hosts(comm) : 1,
        rank = comm ? tr_comm_rank(comm) : 0;
    struct notice *notices = tr_alloc_zero((size_t)size, sizeof *notices);
    if (!notices) return TR_ENOMEM;
    notices[rank] = (struct notice){*demand, *room};
    tr_status status = comm ? tr_comm_exchange(comm, notices, sizeof *notices, "memory") : TR_OK;
    for (int r = 0; r < size; r++) end_strings(&notices[r]);
    /* All ranks check all hosts, so that they agree. */
    for (int host = 0; status == TR_OK && host < hosts; host++) {
        struct tr_train_memory sums = {0};
        const struct notice *first = NULL;
        int64_t once = 0;
        for (int r = 0; r < size; r++) {
            if (comm && tr_comm_host_of(comm, r) != host) continue;
            if (!first) first = &notices[r];
            add_rank(&sums, &notices[r], &once);
        }
        if (!first) continue;
        sums.ranks = sum(sums.ranks, once - sums.data);
        sums.free = first->room.free;
        const char *name = comm && hosts > 1 ? tr_comm_host(comm, (int)(first - notices)) : "";
        if (!comm || tr_comm_host_of(comm, rank) == host) {
            int processes;
            *out = sums;
            out->device = taken_of(comm, notices, size, rank, demand->on[0].device, &processes);
        }
        if (check && sum(sums.ranks, sums.data) > sums.free) status = refuse(&sums, name, first->room.where);
        if (check && status == TR_OK)
            status = admit_devices(comm, notices, size, (int)(first - notices), name);
    }
    tr_free(notices);
    return status;
}
