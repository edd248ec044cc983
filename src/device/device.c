#include "device/device.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/ref/ref.h"

#include <assert.h>
#include <string.h>

tr_status tr_device_create(const char *name, int threads, const char *isa, tr_device **out)
{
    *out = NULL;
    if (threads < 0 || threads > TR_TEAM_MAX)
        return tr_fail(TR_EINVAL, "threads: %d is out of range; choose 1 to %d, or 0 for one per core",
                       threads, TR_TEAM_MAX);
    if (!strcmp(name, "cpu")) return tr_device_cpu_create(threads, isa, out);
    if (!strcmp(name, "ref")) return tr_device_ref_create(out);
    return tr_fail(TR_ENOTFOUND, "device \"%s\" does not exist; choose cpu or ref", name);
}

void tr_device_destroy(tr_device **device)
{
    if (!*device) return;
    (*device)->class->destroy(*device);
    *device = NULL;
}

double tr_device_peak(tr_device *device, double seconds)
{
    return device->class->peak ? device->class->peak(device, seconds) : 0;
}

tr_status tr_device_alloc(tr_device *device, size_t bytes, void **out)
{
    *out = NULL;
    return device->class->alloc(device, bytes, out);
}

void tr_device_free(tr_device *device, void *memory)
{
    if (memory) device->class->free(device, memory);
}

void tr_device_discard(tr_device *device, void *memory, size_t bytes)
{
    if (device->class->host_memory) tr_discard(memory, bytes);
}

tr_status tr_device_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    assert(bytes == 0 || (to && from));
    return device->class->to_device(device, to, from, bytes);
}

tr_status tr_device_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    assert(bytes == 0 || (to && from));
    return device->class->to_host(device, to, from, bytes);
}

tr_status tr_device_wait(tr_device *device)
{
    return device->class->wait(device);
}

const void *tr_device_host_view(const tr_device *device, const void *memory)
{
    return device->class->host_memory ? memory : NULL;
}

const void *tr_device_adopt(const tr_device *device, const void *host)
{
    return device->class->host_memory ? host : NULL;
}

#define WRAPPER(op)                                                                                          \
    tr_status tr_device_##op(tr_device *device, const struct tr_op_##op *arguments)                          \
    {                                                                                                        \
        assert(arguments);                                                                                   \
        if (!device->class->op)                                                                              \
            return tr_fail(TR_EUNSUPPORTED, "device %s has no operation \"" #op "\"; use another device",    \
                           device->description);                                                             \
        return device->class->op(device, arguments);                                                         \
    }
TR_DEVICE_OPS(WRAPPER)
#undef WRAPPER
