/* OpenCL's functions, loaded when a device is first requested: from the loader that all drivers share
 * (libOpenCL.so.1) or, where it is missing or finds no driver, from NVIDIA's driver itself. Containers
 * often have that driver but no file in /etc/OpenCL/vendors that names it.
 *
 * A driver gives clIcdGetPlatformIDsKHR only by clGetExtensionFunctionAddress (cl_khr_icd). Its other
 * functions are in the table at the beginning of each of its objects; a driver of version 2 of that
 * extension gives them by name.
 */
#include "device/gpu/opencl/internal.h"

#include "base/fail.h"
#include "base/text/log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct opencl_library opencl_library;
#define cl opencl_library

#define LOADER      "libOpenCL.so.1"
#define NVIDIA      "libnvidia-opencl.so.1"
#define MOST_DIRECT 8

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the loader ---- */

static const char *why_not_loaded(void)
{
    const char *why = dlerror();
    return why ? why : "it cannot be loaded";
}

static void use_loader(void)
{
    void *library = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(cl.missing, sizeof cl.missing, LOADER " cannot be loaded (%s)", why_not_loaded());
        return;
    }
#define LOAD(result, name, place, parameters)                                                                \
    *(void **)(void *)&cl.name = dlsym(library, #name);                                                      \
    if (!cl.name && !cl.missing[0])                                                                          \
        snprintf(cl.missing, sizeof cl.missing, LOADER " lacks %s (%s)", #name, why_not_loaded());
    OPENCL_FUNCTIONS(LOAD)
#undef LOAD
}

static bool loader_knows_drivers(void)
{
    uint32_t count = 0;
    struct gpu_signals signals;
    if (cl.missing[0]) return false;
    gpu_keep_signals(&signals);
    int32_t error = cl.clGetPlatformIDs(0, NULL, &count);
    gpu_restore_signals(&signals);
    return error == CL_SUCCESS && count > 0;
}

/* ---- a driver ---- */

static cl_platform direct[MOST_DIRECT];
static uint32_t direct_count;

/* clGetPlatformIDs of the loader. */
static int32_t list_direct(uint32_t most, cl_platform *platforms, uint32_t *count)
{
    for (uint32_t i = 0; platforms && i < most && i < direct_count; i++) platforms[i] = direct[i];
    if (count) *count = direct_count;
    return CL_SUCCESS;
}

typedef void *(*get_address)(const char *name);
typedef void *(*get_address_for)(cl_platform platform, const char *name);
typedef int32_t (*list_platforms)(uint32_t most, cl_platform *platforms, uint32_t *count);

/* Gets the functions of the driver of these platforms; false where one is missing. */
static bool take_functions(get_address get, struct opencl_library *found)
{
    void *by_name = get("clIcdGetFunctionAddressForPlatformKHR");
    void *const *table = *(void *const *const *)(const void *)direct[0];
    get_address_for find;
    *(void **)(void *)&find = by_name;
    bool all = true;
#define TAKE(result, name, place, parameters)                                                                \
    *(void **)(void *)&found->name = by_name ? find(direct[0], #name) : table[place];                        \
    all = all && found->name;
    OPENCL_FUNCTIONS(TAKE)
#undef TAKE
    found->clGetPlatformIDs = list_direct;
    return all;
}

/* Whether NVIDIA's driver is installed and has platforms: then this process uses them. */
static bool use_driver(void)
{
    get_address get;
    list_platforms list;
    struct opencl_library found = {.missing = ""};
    void *library = dlopen(NVIDIA, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = why_not_loaded();
        if (!strstr(why, NVIDIA ": cannot open shared object file"))
            snprintf(cl.driver, sizeof cl.driver, " (" NVIDIA " cannot be loaded: %s)", why);
        return false;
    }
    *(void **)(void *)&get = dlsym(library, "clGetExtensionFunctionAddress");
    if (!get) return false;
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    *(void **)(void *)&list = get("clIcdGetPlatformIDsKHR");
    bool has = list && list(MOST_DIRECT, direct, &direct_count) == CL_SUCCESS && direct_count > 0;
    if (direct_count > MOST_DIRECT) direct_count = MOST_DIRECT;
    has = has && take_functions(get, &found);
    gpu_restore_signals(&signals);
    if (has) cl = found;
    return has;
}

static void load(void)
{
    use_loader();
    if (loader_knows_drivers()) return;
    char missing[sizeof cl.missing];
    snprintf(missing, sizeof missing, "%s", cl.missing);
    if (!use_driver()) return;
    tr_log_line(TR_LOG_WARNING,
                "%s: " NVIDIA
                " is used directly; a file in /etc/OpenCL/vendors that holds this name would tell all "
                "programs of it",
                missing[0] ? missing : LOADER " knows no driver");
}

tr_status opencl_need_library(void)
{
    pthread_once(&once, load);
    if (!cl.missing[0]) return TR_OK;
    return tr_fail(
        TR_ENOTFOUND,
        "no OpenCL here: %s%s; install the driver of the device, and ocl-icd-libopencl1 (Debian, Ubuntu)",
        cl.missing, cl.driver);
}
