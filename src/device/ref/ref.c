#include "device/ref/ref.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static tr_status host_alloc(tr_device *device, size_t bytes, void **out)
{
    (void)device;
    *out = tr_alloc_aligned(bytes, 1);
    return *out ? TR_OK : TR_ENOMEM;
}

static void host_free(tr_device *device, void *memory)
{
    (void)device;
    tr_free(memory);
}

static tr_status host_copy(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0) memcpy(to, from, bytes);
    return TR_OK;
}

static tr_status host_wait(tr_device *device)
{
    (void)device; /* every operation is complete when its function returns */
    return TR_OK;
}

static void host_destroy(tr_device *device)
{
    tr_free(device);
}

const struct tr_device_class tr_device_ref = {.name = "ref",
                                              .version = TR_DEVICE_VERSION,
                                              .host_memory = true,
                                              .alloc = host_alloc,
                                              .free = host_free,
                                              .to_device = host_copy,
                                              .to_host = host_copy,
                                              .wait = host_wait,
                                              .destroy = host_destroy,
#define SLOT(op) .op = ref_##op,
                                              TR_DEVICE_OPS(SLOT)
#undef SLOT
};

static tr_status ref_create(const struct tr_device_choice *choice, tr_device **out)
{
    (void)choice;
    *out = NULL;
    tr_device *device = tr_alloc_zero(1, sizeof *device);
    if (!device) return TR_ENOMEM;
    device->class = &tr_device_ref;
    device->threads = 1;
    snprintf(device->description, sizeof device->description, "ref (plain loops, 1 thread)");
    *out = device;
    return TR_OK;
}

const struct tr_device_kind tr_device_kind_ref = {
    .name = "ref",
    .help = "plain loops on one core: the definition of every bit",
    .create = ref_create,
};
