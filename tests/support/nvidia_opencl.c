/* Stands in for NVIDIA's OpenCL driver, in a library of its name: exports clGetExtensionFunctionAddress,
 * as drivers do for the loader, and forwards it to the driver that TRIREME_TEST_DRIVER names. With
 * TRIREME_TEST_BY_NAME it finds other functions by name, too, as drivers of version 2 of cl_khr_icd do.
 */
#include "device/gpu/opencl/abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *function_for(cl_platform platform, const char *name)
{
    void *const *table = *(void *const *const *)(const void *)platform;
#define FIND(result, function, place, parameters)                                                            \
    if (strcmp(name, #function) == 0) return table[place];
    OPENCL_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

__attribute__((visibility("default"))) void *clGetExtensionFunctionAddress(const char *name);
void *clGetExtensionFunctionAddress(const char *name)
{
    static void *driver;
    void *(*get)(const char *name), *found;
    void *(*by_name)(cl_platform platform, const char *name) = function_for;
    const char *path = getenv("TRIREME_TEST_DRIVER");
    if (strcmp(name, "clIcdGetFunctionAddressForPlatformKHR") == 0) {
        memcpy(&found, &by_name, sizeof found);
        return getenv("TRIREME_TEST_BY_NAME") ? found : NULL;
    }
    if (!driver && path) driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!driver) return NULL;
    *(void **)(void *)&get = dlsym(driver, "clGetExtensionFunctionAddress");
    return get ? get(name) : NULL;
}
