/* The kinds of devices that gpu/ provides: one for each interface, and GPUs through any interface. */
#include "device/gpu/kinds.h"

#include "base/fail.h"
#include "device/gpu/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- one interface ---- */

static tr_status describe(const struct gpu_api *api, int number, char *text, size_t size)
{
    struct gpu_info info;
    TR_TRY(api->describe(number, &info));
    snprintf(text, size, "%s, %.1f GiB (%s)", info.name, (double)info.memory / 1073741824, info.platform);
    return info.refusal[0] ? tr_fail(TR_EUNSUPPORTED, "%s", info.refusal) : TR_OK;
}

/* Devices that are not processors come first; if there are any, only these are distributed to ranks. */
static int count_devices(const struct gpu_api *api)
{
    struct gpu_info info;
    int all = 0, others = 0;
    for (; api->describe(all, &info) == TR_OK; all++) others += !info.processor;
    return others ? others : all;
}

#define KIND(interface, words)                                                                               \
    static tr_status interface##_create(const struct tr_device_choice *choice, tr_device **out)              \
    {                                                                                                        \
        return gpu_device_create(&gpu_api_##interface, choice, out);                                         \
    }                                                                                                        \
    static tr_status interface##_describe(int number, char *text, size_t size)                               \
    {                                                                                                        \
        return describe(&gpu_api_##interface, number, text, size);                                           \
    }                                                                                                        \
    static int interface##_count(void)                                                                       \
    {                                                                                                        \
        return count_devices(&gpu_api_##interface);                                                          \
    }                                                                                                        \
    const struct tr_device_kind tr_device_kind_##interface = {                                               \
        .name = #interface,                                                                                  \
        .help = words,                                                                                       \
        .create = interface##_create,                                                                        \
        .describe = interface##_describe,                                                                    \
        .count = interface##_count,                                                                          \
    };

KIND(cuda, "a GPU of NVIDIA with its driver and NVRTC")
KIND(opencl, "a GPU, or another device with an OpenCL driver")

/* ---- each GPU once ---- */

#define MOST_PLACES 64

/* The interfaces, the preferred one first. */
static const struct {
    const struct gpu_api *api;
    const struct tr_device_kind *kind;
} interfaces[] = {{&gpu_api_cuda, &tr_device_kind_cuda}, {&gpu_api_opencl, &tr_device_kind_opencl}};

struct places {
    char place[MOST_PLACES][sizeof((struct gpu_info *)0)->place];
    int count;
};

/* Whether a device's bus address was seen before; notes it as seen. */
static bool was_seen(struct places *seen, const char *place)
{
    for (int i = 0; i < seen->count; i++)
        if (place[0] && strcmp(seen->place[i], place) == 0) return true;
    if (seen->count < MOST_PLACES) snprintf(seen->place[seen->count++], sizeof seen->place[0], "%s", place);
    return false;
}

/* Finds number `wanted` of the GPUs that may be exact: its interface, and its number there. */
static tr_status find_gpu(int wanted, const struct tr_device_kind **kind, int *number)
{
    struct places seen = {.count = 0};
    int found = 0;
    char refusal[sizeof((struct gpu_info *)0)->refusal] = "";
    for (size_t i = 0; i < sizeof interfaces / sizeof interfaces[0]; i++) {
        struct gpu_info info;
        for (int n = 0; interfaces[i].api->describe(n, &info) == TR_OK; n++) {
            if (info.processor) continue;
            if (info.refusal[0]) {
                snprintf(refusal, sizeof refusal, "%s", info.refusal);
                continue;
            }
            if (was_seen(&seen, info.place) || found++ < wanted) continue;
            *kind = interfaces[i].kind;
            *number = n;
            return TR_OK;
        }
    }
    if (found > 0)
        return tr_fail(TR_ENOTFOUND, "there is no GPU %d; there %s, counted from 0", wanted,
                       found == 1 ? "is 1" : "are fewer");
    if (refusal[0]) return tr_fail(TR_ENOTFOUND, "there is no GPU here that can be used: %s", refusal);
    return tr_fail(TR_ENOTFOUND,
                   "there is no GPU here that CUDA or OpenCL knows; `trireme devices` says why");
}

static tr_status gpu_resolve(int *number, const struct tr_device_kind **kind)
{
    return find_gpu(*number, kind, number);
}

static tr_status gpu_describe(int number, char *text, size_t size)
{
    const struct tr_device_kind *kind;
    TR_TRY(find_gpu(number, &kind, &number));
    return kind->describe(number, text, size);
}

static int gpu_count(void)
{
    const struct tr_device_kind *kind;
    int count = 0, number;
    while (find_gpu(count, &kind, &number) == TR_OK) count++;
    return count;
}

const struct tr_device_kind tr_device_kind_gpu = {
    .name = "gpu",
    .help = "a GPU by CUDA where that can be used, else by OpenCL",
    .resolve = gpu_resolve,
    .describe = gpu_describe,
    .count = gpu_count,
};
