/* CUDA's driver and compiler, loaded when a device is first requested, and the devices that they know. */
#include "base/fail.h"
#include "device/gpu/cuda/internal.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_library cuda_library;
#define cu cuda_library

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- loading ---- */

void cuda_error_text(cu_result error, char *text, size_t size)
{
    const char *name = NULL, *words = NULL;
    if (cu.cuGetErrorName(error, &name) != CUDA_SUCCESS || !name) name = "an unknown error";
    if (cu.cuGetErrorString(error, &words) != CUDA_SUCCESS || !words) words = "no description";
    snprintf(text, size, "%s: %s", name, words);
}

static void say_load_failed(char *text, size_t size, const char *name)
{
    const char *words = dlerror();
    snprintf(text, size, "%s", words ? words : name);
}

static bool find_pools(void *library)
{
    bool all = true;
#define FIND(result, name, parameters)                                                                       \
    *(void **)(void *)&cu.name = dlsym(library, #name);                                                      \
    all = all && cu.name;
    CUDA_POOL_FUNCTIONS(FIND)
    return all;
}

static bool find_graphs(void *library)
{
    bool all = true;
    CUDA_GRAPH_FUNCTIONS(FIND)
    return all;
}
#undef FIND

static void load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        say_load_failed(cu.missing, sizeof cu.missing, "libcuda.so.1");
        return;
    }
#define LOAD(result, name, parameters)                                                                       \
    *(void **)(void *)&cu.name = dlsym(library, #name);                                                      \
    if (!cu.name && !cu.missing[0]) snprintf(cu.missing, sizeof cu.missing, "libcuda.so.1 lacks %s", #name);
    CUDA_FUNCTIONS(LOAD)
#undef LOAD
    cu.pools = find_pools(library);
    cu.graphs = find_graphs(library);
    if (cu.missing[0]) return;
    cu_result error = cu.cuInit(0);
    if (error == CUDA_SUCCESS) error = cu.cuDriverGetVersion(&cu.version);
    if (error != CUDA_SUCCESS) cuda_error_text(error, cu.missing, sizeof cu.missing);
}

/* ---- the compiler ---- */

/* Versions of the compiler, the newest first. */
static const struct {
    int major;
    const char *name;
} compilers[] = {
    {13, "libnvrtc.so.13"}, {12, "libnvrtc.so.12"}, {11, "libnvrtc.so.11.2"}, {0, "libnvrtc.so"}};
enum { COMPILERS = sizeof compilers / sizeof compilers[0] };

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static bool use_compiler(void *library, const char *name)
{
    char *text = cu.compiler_missing;
    text[0] = '\0';
#define LOAD(result, name_, parameters)                                                                      \
    *(void **)(void *)&cu.name_ = dlsym(library, #name_);                                                    \
    if (!cu.name_ && !text[0]) snprintf(text, CUDA_MESSAGE_SIZE, "%s lacks %s", name, #name_);
    NVRTC_FUNCTIONS(LOAD)
#undef LOAD
    if (text[0]) return false;
    int error = cu.nvrtcVersion(&cu.compiler_major, &cu.compiler_minor);
    if (error == 0) error = cu.nvrtcGetNumSupportedArchs(&cu.arch_count);
    if (error == 0 && (cu.arch_count < 1 || cu.arch_count > CUDA_MOST_ARCHS)) cu.arch_count = 0;
    if (error == 0 && cu.arch_count > 0) error = cu.nvrtcGetSupportedArchs(cu.archs);
    if (error != 0 || cu.arch_count == 0) {
        snprintf(text, CUDA_MESSAGE_SIZE, "%s: %s", name,
                 error ? cu.nvrtcGetErrorString(error) : "it knows no architecture");
        return false;
    }
    qsort(cu.archs, (size_t)cu.arch_count, sizeof cu.archs[0], compare);
    return true;
}

/* Loads the newest version that the driver fully supports; else a newer one. */
static void load_compiler(void)
{
    char words[CUDA_MESSAGE_SIZE] = "";
    for (int newer = 0; newer < 2; newer++)
        for (int i = 0; i < COMPILERS; i++) {
            if ((compilers[i].major > cu.version / 1000) != newer) continue;
            void *library = dlopen(compilers[i].name, RTLD_NOW | RTLD_LOCAL);
            if (library && use_compiler(library, compilers[i].name)) return;
            if (!library) say_load_failed(cu.compiler_missing, sizeof cu.compiler_missing, compilers[i].name);
            if (library) dlclose(library);
            /* for the message: one that exists but cannot be used, or else the version that fits the
               driver */
            if (!words[0] || library) snprintf(words, sizeof words, "%s", cu.compiler_missing);
        }
    snprintf(cu.compiler_missing, sizeof cu.compiler_missing, "%s", words);
}

static void load(void)
{
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    load_driver();
    if (!cu.missing[0]) load_compiler();
    gpu_restore_signals(&signals);
}

/* ---- devices ---- */

int cuda_attribute(cu_device device, int what)
{
    int value = 0;
    return cu.cuDeviceGetAttribute(&value, what, device) == CUDA_SUCCESS ? value : 0;
}

int cuda_arch_of(cu_device device, bool *own)
{
    int best = 0, arch = 10 * cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    for (int i = 0; i < cu.arch_count; i++)
        if (cu.archs[i] <= arch) best = cu.archs[i];
    *own = best == arch;
    return best;
}

tr_status cuda_find(int number, cu_device *out)
{
    int count = 0;
    pthread_once(&once, load);
    if (cu.missing[0])
        return tr_fail(TR_ENOTFOUND, "no CUDA here: %s; install NVIDIA's driver where there is such a GPU",
                       cu.missing);
    cu_result error = cu.cuDeviceGetCount(&count);
    if (error == CUDA_SUCCESS && number >= 0 && number < count) error = cu.cuDeviceGet(out, number);
    if (error != CUDA_SUCCESS) {
        char text[CUDA_MESSAGE_SIZE];
        cuda_error_text(error, text, sizeof text);
        return tr_fail(TR_ENOTFOUND, "CUDA does not tell its devices: %s", text);
    }
    if (count == 0)
        return tr_fail(TR_ENOTFOUND, "CUDA knows no device here; nvidia-smi lists those there are");
    if (number < 0 || number >= count)
        return tr_fail(TR_ENOTFOUND, "there is no CUDA device %d; there %s, counted from 0", number,
                       count == 1 ? "is 1" : "are fewer");
    return TR_OK;
}

/* The version of the driver itself, which the interface does not report. */
static void find_driver(char *text, size_t size)
{
    char line[32] = "";
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    if (file) {
        if (!fgets(line, sizeof line, file)) line[0] = '\0';
        fclose(file);
    }
    snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static void find_refusal(cu_device device, int arch, struct gpu_info *info)
{
    size_t size = sizeof info->refusal;
    if (cu.compiler_missing[0])
        snprintf(info->refusal, size, "its compiler NVRTC is not here: %.120s", cu.compiler_missing);
    else if (arch == 0)
        snprintf(info->refusal, size, "NVRTC %d.%d does not compile for so old a device", cu.compiler_major,
                 cu.compiler_minor);
    else if (info->group < GPU_LEAST_THREADS)
        snprintf(info->refusal, size, "its groups have %u threads, kernels need %d", info->group,
                 GPU_LEAST_THREADS);
    if (cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
        snprintf(info->refusal, size, "nvidia-smi has its compute mode as \"prohibited\"");
}

static void fill_info(cu_device device, struct gpu_info *info)
{
    char driver[32];
    size_t memory = 0;
    bool own;
    *info = (struct gpu_info){.platform = "CUDA", .vendor = "NVIDIA Corporation"};
    if (cu.cuDeviceGetName(info->name, sizeof info->name, device) != CUDA_SUCCESS)
        snprintf(info->name, sizeof info->name, "a CUDA device");
    info->name[sizeof info->name - 1] = '\0';
    int arch = cuda_arch_of(device, &own);
    find_driver(driver, sizeof driver);
    snprintf(info->driver, sizeof info->driver, "%s%sCUDA %d.%d, NVRTC %d.%d, %s%d", driver,
             driver[0] ? ", " : "", cu.version / 1000, cu.version % 1000 / 10, cu.compiler_major,
             cu.compiler_minor, own ? "sm_" : "compute_", arch);
    if (cu.cuDeviceGetPCIBusId(info->place, sizeof info->place, device) != CUDA_SUCCESS)
        info->place[0] = '\0';
    for (char *at = info->place; *at; at++) *at = (char)tolower((unsigned char)*at);
    if (cu.cuDeviceTotalMem_v2(&memory, device) == CUDA_SUCCESS) info->memory = info->allocation = memory;
    info->shared = (uint64_t)cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    info->group = (uint32_t)cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    info->units = (uint32_t)cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info->unified = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
    info->lists = cu.graphs;
    find_refusal(device, arch, info);
}

tr_status cuda_describe(int number, struct gpu_info *out)
{
    cu_device device;
    TR_TRY(cuda_find(number, &device));
    fill_info(device, out);
    return TR_OK;
}
