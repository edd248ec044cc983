/* The devices that OpenCL finds here, and their properties. */
#include "device/gpu/opencl/internal.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

#define cl opencl_library

/* ---- devices ---- */

#define MOST_PLATFORMS 32
#define MOST_DEVICES   64
/* A platform that keeps compiled kernels between runs, each for the numbers of groups of its launches; for
   a binary it compiles all kernels again. */
#define POCL "Portable Computing Language"

static uint64_t number_of(cl_device device, uint32_t what)
{
    uint64_t value = 0; /* answers are of 4 or 8 bytes; this program runs on little-endian machines */
    size_t bytes = 0;
    if (cl.clGetDeviceInfo(device, what, sizeof value, &value, &bytes) != CL_SUCCESS) return 0;
    if (bytes == sizeof(uint32_t)) {
        uint32_t small;
        memcpy(&small, &value, sizeof small);
        return small;
    }
    return value;
}

uint64_t opencl_promises(cl_device device)
{
    return number_of(device, CL_DEVICE_SINGLE_FP_CONFIG);
}

void opencl_text_of(cl_device device, uint32_t what, char *text, size_t size)
{
    char answer[1024] = "";
    if (cl.clGetDeviceInfo(device, what, sizeof answer - 1, answer, NULL) != CL_SUCCESS) answer[0] = '\0';
    const char *begin = answer + strspn(answer, " ");
    snprintf(text, size, "%.*s", (int)(size - 1), begin);
}

/* All devices, with those that are not processors first. */
static int list_devices(struct opencl_found list[MOST_DEVICES])
{
    cl_platform platforms[MOST_PLATFORMS];
    uint32_t platform_count = 0;
    int count = 0;
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    int32_t error = cl.clGetPlatformIDs(MOST_PLATFORMS, platforms, &platform_count);
    if (error != CL_SUCCESS) platform_count = 0;
    if (platform_count > MOST_PLATFORMS) platform_count = MOST_PLATFORMS;
    for (int processors = 0; processors < 2; processors++) {
        for (uint32_t p = 0; p < platform_count; p++) {
            cl_device devices[MOST_DEVICES];
            uint32_t devices_count = 0;
            if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &devices_count) !=
                CL_SUCCESS)
                continue;
            for (uint32_t d = 0; d < devices_count && d < MOST_DEVICES && count < MOST_DEVICES; d++) {
                bool is = (number_of(devices[d], CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
                if (is == (processors == 1)) list[count++] = (struct opencl_found){platforms[p], devices[d]};
            }
        }
    }
    gpu_restore_signals(&signals);
    return count;
}

tr_status opencl_find(int number, struct opencl_found *out)
{
    /* One thread at a time: drivers create their devices at the first request, and report none to threads
       that ask meanwhile. */
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    struct opencl_found list[MOST_DEVICES];
    TR_TRY(opencl_need_library());
    pthread_mutex_lock(&one);
    int count = list_devices(list);
    pthread_mutex_unlock(&one);
    if (count == 0)
        return tr_fail(TR_ENOTFOUND,
                       "OpenCL knows no device here%s; install the driver of one, or pocl-opencl-icd "
                       "(Debian, Ubuntu), with which a processor is one",
                       cl.driver);
    if (number < 0 || number >= count)
        return tr_fail(TR_ENOTFOUND, "there is no OpenCL device %d; there %s, counted from 0", number,
                       count == 1 ? "is 1" : "are fewer");
    *out = list[number];
    return TR_OK;
}

/* Its bus address, from the extension or NVIDIA's own queries; else "". */
static void find_place(cl_device device, struct gpu_info *info)
{
    uint32_t place[4] = {0}; /* domain, bus, device, function */
    size_t bytes = 0;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof place, place, &bytes) != CL_SUCCESS ||
        bytes != sizeof place) {
        uint32_t bus, slot;
        if (cl.clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_ID_NV, sizeof bus, &bus, NULL) != CL_SUCCESS ||
            cl.clGetDeviceInfo(device, CL_DEVICE_PCI_SLOT_ID_NV, sizeof slot, &slot, NULL) != CL_SUCCESS)
            return;
        place[0] = (uint32_t)number_of(device, CL_DEVICE_PCI_DOMAIN_ID_NV);
        place[1] = bus;
        place[2] = slot >> 3;
        place[3] = slot & 7;
    }
    snprintf(info->place, sizeof info->place, "%04x:%02x:%02x.%x", place[0], place[1], place[2], place[3]);
}

/* Promises of exact arithmetic that kernels cannot do without, with their names. Other promises may be
   missing: then kernels divide by themselves (kernels/division.h), and the self-test checks fused
   multiply-adds and whether subnormal numbers are flushed. */
static const struct {
    uint64_t bit;
    const char *name;
} needed[] = {
    {CL_FP_INF_NAN, "infinities and NaN"},
    {CL_FP_ROUND_TO_NEAREST, "rounding to nearest"},
};

static void find_refusal(cl_device device, struct gpu_info *info)
{
    uint64_t has = opencl_promises(device);
    info->own_division = !(has & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
    info->slow = !(has & CL_FP_FMA);
    size_t used = 0, size = sizeof info->refusal;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0] && used < size; i++)
        if (!(has & needed[i].bit))
            used += (size_t)snprintf(info->refusal + used, size - used, "%s%s", used ? ", " : "it lacks ",
                                     needed[i].name);
    if (info->group < GPU_LEAST_THREADS)
        snprintf(info->refusal, size, "its groups have %u threads, kernels need %d", info->group,
                 GPU_LEAST_THREADS);
    if (!number_of(device, CL_DEVICE_COMPILER_AVAILABLE))
        snprintf(info->refusal, size, "its driver has no compiler");
    if (!number_of(device, CL_DEVICE_ENDIAN_LITTLE)) snprintf(info->refusal, size, "it is big-endian");
    if (!number_of(device, CL_DEVICE_AVAILABLE))
        snprintf(info->refusal, size, "its driver says that it is not available");
}

static void fill_info(const struct opencl_found *found, struct gpu_info *info)
{
    char platform[1024] = "";
    *info = (struct gpu_info){0};
    if (cl.clGetPlatformInfo(found->platform, CL_PLATFORM_NAME, sizeof platform - 1, platform, NULL) ==
        CL_SUCCESS)
        snprintf(info->platform, sizeof info->platform, "%.*s", (int)sizeof info->platform - 1, platform);
    opencl_text_of(found->device, CL_DEVICE_NAME, info->name, sizeof info->name);
    opencl_text_of(found->device, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
    opencl_text_of(found->device, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    info->memory = number_of(found->device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->allocation = number_of(found->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->shared = number_of(found->device, CL_DEVICE_LOCAL_MEM_SIZE);
    info->group = (uint32_t)number_of(found->device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info->units = (uint32_t)number_of(found->device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->processor = (number_of(found->device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    info->unified = info->processor || number_of(found->device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    find_place(found->device, info);
    info->keeps_programs = strcmp(info->platform, POCL) == 0;
    /* pocl replays them launch by launch, so they save no time */
    info->lists = !info->processor && opencl_has_lists(found->device);
    find_refusal(found->device, info);
}

tr_status opencl_describe(int number, struct gpu_info *out)
{
    struct opencl_found found;
    TR_TRY(opencl_find(number, &found));
    fill_info(&found, out);
    return TR_OK;
}
