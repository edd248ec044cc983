/* Devices, and what they say of themselves. */
#include "device/gpu/fake/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct fake fake;

bool fake_due(const char *name)
{
    if (!fake.fails || fake.failed || (fake.fails[0] && strcmp(fake.fails, name) != 0)) return false;
    if (fake.after-- > 0) return false;
    fake.failed = name;
    return true;
}

void *fake_make(size_t bytes)
{
    void *object = calloc(1, bytes);
    assert_non_null(object);
    fake.live++;
    return object;
}

int32_t fake_release(void *object)
{
    assert_non_null(object);
    fake.live--;
    free(object);
    return CL_SUCCESS;
}

/* ---- devices ---- */

static int32_t list_platforms(uint32_t most, cl_platform *platforms, uint32_t *count)
{
    FAIL(clGetPlatformIDs);
    for (uint32_t i = 0; i < most && i < fake.platforms; i++) platforms[i] = &fake.platform[i];
    if (count) *count = fake.platforms;
    return CL_SUCCESS;
}

int32_t fake_answer(const void *from, size_t bytes, size_t size, void *value, size_t *out)
{
    if (out) *out = bytes;
    if (!value) return CL_SUCCESS;
    if (size < bytes) return FAKE_INVALID_VALUE;
    memcpy(value, from, bytes);
    return CL_SUCCESS;
}

static int32_t platform_info(cl_platform platform, uint32_t what, size_t size, void *value, size_t *bytes)
{
    FAIL(clGetPlatformInfo);
    assert_int_equal(what, CL_PLATFORM_NAME);
    return fake_answer(platform->name, strlen(platform->name) + 1, size, value, bytes);
}

static int32_t list_devices(cl_platform platform, uint64_t type, uint32_t most, cl_device *devices,
                            uint32_t *count)
{
    FAIL(clGetDeviceIDs);
    assert_true(type == CL_DEVICE_TYPE_ALL);
    for (uint32_t i = 0; i < most && i < platform->count; i++) devices[i] = &platform->device[i];
    *count = platform->count;
    return CL_SUCCESS;
}

static int32_t device_info(cl_device device, uint32_t what, size_t size, void *value, size_t *bytes)
{
    FAIL(clGetDeviceInfo);
    switch (what) {
#define NUMBER(name, member)                                                                                 \
    case name:                                                                                               \
        return fake_answer(&device->member, sizeof device->member, size, value, bytes);
        NUMBER(CL_DEVICE_TYPE, type)
        NUMBER(CL_DEVICE_MAX_COMPUTE_UNITS, units)
        NUMBER(CL_DEVICE_MAX_WORK_GROUP_SIZE, group)
        NUMBER(CL_DEVICE_MAX_MEM_ALLOC_SIZE, allocation)
        NUMBER(CL_DEVICE_SINGLE_FP_CONFIG, promises)
        NUMBER(CL_DEVICE_GLOBAL_MEM_SIZE, memory)
        NUMBER(CL_DEVICE_LOCAL_MEM_SIZE, shared)
        NUMBER(CL_DEVICE_ENDIAN_LITTLE, little)
        NUMBER(CL_DEVICE_AVAILABLE, available)
        NUMBER(CL_DEVICE_COMPILER_AVAILABLE, compiler)
        NUMBER(CL_DEVICE_HOST_UNIFIED_MEMORY, unified)
#undef NUMBER
#define TEXT(name, member)                                                                                   \
    case name:                                                                                               \
        return fake_answer(device->member, strlen(device->member) + 1, size, value, bytes);
        TEXT(CL_DEVICE_NAME, name)
        TEXT(CL_DEVICE_VENDOR, vendor)
        TEXT(CL_DRIVER_VERSION, driver)
        TEXT(CL_DEVICE_EXTENSIONS, extensions)
#undef TEXT
#define IF_ANY(name, has, member)                                                                            \
    case name:                                                                                               \
        return device->has ? fake_answer(&device->member, sizeof device->member, size, value, bytes)         \
                           : FAKE_INVALID_VALUE;
        IF_ANY(CL_DEVICE_PCI_BUS_ID_NV, has_bus, bus)
        IF_ANY(CL_DEVICE_PCI_SLOT_ID_NV, has_slot, slot)
        IF_ANY(CL_DEVICE_PCI_DOMAIN_ID_NV, has_domain, domain)
        IF_ANY(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, has_lists, lists)
        IF_ANY(CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, has_lists, lists_need)
#undef IF_ANY
    case CL_DEVICE_PCI_BUS_INFO_KHR:
        return device->place_bytes ? fake_answer(device->place, device->place_bytes, size, value, bytes)
                                   : FAKE_INVALID_VALUE;
    default:
        fail_msg("nobody knows property %#x", what);
        return FAKE_INVALID_VALUE;
    }
}

struct cl_device_s fake_gpu(const char *name)
{
    return (struct cl_device_s){.name = name,
                                .vendor = "a maker",
                                .driver = "7.1",
                                .extensions = "",
                                .type = 4,
                                .memory = (uint64_t)6 << 30,
                                .allocation = (uint64_t)2 << 30,
                                .shared = 48 << 10,
                                .group = 1024,
                                .promises = CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA |
                                            CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
                                .units = 20,
                                .little = 1,
                                .available = 1,
                                .compiler = 1};
}

void fake_begin(void)
{
    (void)opencl_need_library(); /* once; whatever it found is not used */
    fake = (struct fake){.platforms = 1};
    fake.platform[0] = (struct cl_platform_s){"a platform", 1, {fake_gpu("a gpu")}};
    opencl_library = (struct opencl_library){.missing = ""};
    fake_devices(&opencl_library);
    fake_queues(&opencl_library);
    fake_programs(&opencl_library);
}

void fake_devices(struct opencl_library *library)
{
    library->clGetPlatformIDs = list_platforms;
    library->clGetPlatformInfo = platform_info;
    library->clGetDeviceIDs = list_devices;
    library->clGetDeviceInfo = device_info;
}
