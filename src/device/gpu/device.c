/* The gpu device: device.h on an interface to accelerators (api.h). */
#include "device/gpu/internal.h"
#include "device/gpu/operations/operations.h"
#include "device/gpu/self_test.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>

#define GROUP_THREADS 256 /* a power of two, at least GPU_LEAST_THREADS */

/* ---- order ---- */

static void forget_marks(struct gpu *gpu, int count)
{
    for (int i = 0; i < count; i++) gpu->api->free_event(gpu->session, gpu->marks[i].event);
    gpu->mark_count -= count;
    for (int i = 0; i < gpu->mark_count; i++) gpu->marks[i] = gpu->marks[i + count];
}

static tr_status gpu_wait(tr_device *device)
{
    struct gpu *gpu = gpu_of(device);
    tr_status status = gpu_lists_end(gpu), waited = gpu->api->wait(gpu->session);
    TR_TRY(status != TR_OK ? status : waited);
    forget_marks(gpu, gpu->mark_count);
    gpu->reached = gpu->recorded;
    return gpu_times_take(gpu);
}

static tr_status gpu_record(tr_device *device, tr_event *out)
{
    struct gpu *gpu = gpu_of(device);
    if (!tr_grow(&gpu->marks, gpu->mark_count, sizeof *gpu->marks)) return TR_ENOMEM;
    struct gpu_mark *mark = &gpu->marks[gpu->mark_count];
    TR_TRY(gpu_lists_end(gpu));
    TR_TRY(gpu->api->record(gpu->session, &mark->event));
    mark->number = ++gpu->recorded;
    gpu->mark_count++;
    out->number = mark->number;
    return TR_OK;
}

/* Commands complete in order: if a mark is reached, so is all before it. */
static tr_status gpu_reached(tr_device *device, tr_event event, bool *out)
{
    struct gpu *gpu = gpu_of(device);
    int passed = 0;
    for (; passed < gpu->mark_count && gpu->marks[passed].number <= event.number; passed++) {
        bool there;
        TR_TRY(gpu->api->reached(gpu->session, gpu->marks[passed].event, &there));
        if (!there) break;
        gpu->reached = gpu->marks[passed].number;
    }
    forget_marks(gpu, passed);
    *out = event.number <= gpu->reached;
    return TR_OK;
}

/* A mark that is not in the list was reached. */
static tr_status gpu_wait_for(tr_device *device, tr_event event)
{
    struct gpu *gpu = gpu_of(device);
    int passed = 0;
    while (passed < gpu->mark_count && gpu->marks[passed].number <= event.number) passed++;
    if (passed == 0) return TR_OK;
    TR_TRY(gpu_lists_end(gpu)); /* the device works while the host waits */
    TR_TRY(gpu->api->wait_for(gpu->session, gpu->marks[passed - 1].event));
    gpu->reached = gpu->marks[passed - 1].number;
    forget_marks(gpu, passed);
    return TR_OK;
}

/* ---- a device ---- */

static int64_t gpu_own_memory(const tr_device *device)
{
    const struct gpu_info *info = &((const struct gpu *)device)->info;
    if (info->unified) return 0;
    return info->memory < INT64_MAX ? (int64_t)info->memory : INT64_MAX;
}

static tr_status gpu_alloc_pinned(tr_device *device, size_t bytes, void **out)
{
    struct gpu *gpu = gpu_of(device);
    return gpu->api->alloc_pinned(gpu->session, bytes ? bytes : 1, out);
}

static void gpu_free_pinned(tr_device *device, void *memory)
{
    struct gpu *gpu = gpu_of(device);
    gpu->api->free_pinned(gpu->session, memory);
}

static void gpu_destroy(tr_device *device)
{
    struct gpu *gpu = gpu_of(device);
    if (gpu->session) {
        (void)gpu->api->wait(gpu->session);
        forget_marks(gpu, gpu->mark_count);
        gpu_lists_release(gpu);
        gpu_times_release(gpu); /* spans of timelines that may no longer exist */
        gpu_programs_release(gpu);
        gpu_plans_release(gpu);
        gpu_memory_release(gpu);
        gpu->api->close(gpu->session);
    }
    tr_free(gpu->marks);
    tr_free(gpu->cache);
    tr_free(gpu->sources);
    tr_free(gpu);
}

static const struct tr_device_class gpu_class = {.name = "gpu",
                                                 .version = TR_DEVICE_VERSION,
                                                 .alloc = gpu_alloc,
                                                 .free = gpu_free,
                                                 .to_device = gpu_to_device,
                                                 .to_host = gpu_to_host,
                                                 .to_host_beside = gpu_to_host_beside,
                                                 .wait = gpu_wait,
                                                 .record = gpu_record,
                                                 .reached = gpu_reached,
                                                 .wait_for = gpu_wait_for,
                                                 .alloc_pinned = gpu_alloc_pinned,
                                                 .free_pinned = gpu_free_pinned,
                                                 .room = gpu_room,
                                                 .memory = gpu_own_memory,
                                                 .destroy = gpu_destroy,
#define SLOT(op) .op = gpu_##op,
                                                 GPU_OPS(SLOT)
#undef SLOT
};

tr_status gpu_device_create(const struct gpu_api *api, const struct tr_device_choice *choice, tr_device **out)
{
    *out = NULL;
    struct gpu *gpu = tr_alloc_zero(1, sizeof *gpu);
    if (!gpu) return TR_ENOMEM;
    tr_device *device = &gpu->base;
    int number = choice->number;
    gpu->api = api;
    gpu->number = number;
    gpu->class = gpu_class;
    gpu->class.name = api->name;
    device->class = &gpu->class;
    device->threads = 1;
    tr_status status = api->describe(number, &gpu->info);
    if (status != TR_OK) goto out;
    snprintf(device->description, sizeof device->description, "%s:%d (%.70s)", api->name, number,
             gpu->info.name);
    gpu->threads = GROUP_THREADS;
    while (gpu->threads > gpu->info.group && gpu->threads > GPU_LEAST_THREADS) gpu->threads /= 2;
    if (gpu->info.refusal[0]) {
        status =
            tr_fail(TR_EUNSUPPORTED, "%s cannot give the bits of other devices: %s; choose another device",
                    device->description, gpu->info.refusal);
        goto out;
    }
    if (choice->cache && !(gpu->cache = tr_strdup(choice->cache))) {
        status = TR_ENOMEM;
        goto out;
    }
    gpu->ahead_least = INT64_MIN;
    gpu->ahead_most = INT64_MAX;
    status = gpu_sources_unpack(&gpu->sources);
    if (status == TR_OK) status = api->open(number, choice->timed, &gpu->session);
    if (status == TR_OK) status = gpu_self_test(gpu);
    device->timed = choice->timed;
    device->slow = gpu->info.slow;
    if (status == TR_OK && gpu->info.lists && !choice->timed) gpu_lists_create(gpu);
out:
    if (status != TR_OK)
        gpu_destroy(device);
    else
        *out = device;
    return status;
}
