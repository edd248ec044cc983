/* OpenCL without a driver: platforms and devices that a test describes, behind functions that take the place
 * of the library's. Memory is the host's. Nothing is done before its queue is flushed, and then when somebody
 * waits for it; who waits for what was never flushed fails the test, since a device could wait for ever.
 */
#ifndef TESTS_DEVICE_GPU_FAKE_OPENCL_H
#define TESTS_DEVICE_GPU_FAKE_OPENCL_H

#include "device/gpu/opencl/internal.h"

#include <stdbool.h>

enum { FAKE_PLATFORMS = 33, FAKE_DEVICES = 3, FAKE_ARGUMENTS = 8 };

struct cl_device_s {
    const char *name, *vendor, *driver, *extensions;
    uint64_t type, memory, allocation, shared, group, promises; /* answers of 8 bytes */
    uint64_t lists, lists_need;
    uint32_t units, little, available, compiler, unified; /* answers of 4 bytes */
    size_t place_bytes;                                   /* of the answer; 0: it cannot be asked for */
    uint32_t place[4];
    bool has_bus, has_slot, has_domain, has_lists; /* whether these can be asked for */
    uint32_t bus, slot, domain;
};

struct cl_platform_s {
    const char *name;
    uint32_t count;
    struct cl_device_s device[FAKE_DEVICES];
};

struct fake_launch {
    char kernel[32];
    size_t global[3], local[3], offset[3];
    bool has_offset;
    int arguments;
    size_t size[FAKE_ARGUMENTS];
    unsigned char value[FAKE_ARGUMENTS][8];
};

/* What may be set, */
extern struct fake {
    uint32_t platforms;
    struct cl_platform_s platform[FAKE_PLATFORMS];
    const char *fails; /* the function that fails; "": any; NULL: none, */
    int after;         /* at its call number `after`, counted from 0, */
    int32_t code;      /* with this error */
    int32_t state;     /* of events that are reached: CL_COMPLETE, or an error */
    /* and what was done. */
    const char *failed; /* the function that failed; NULL: none yet */
    int live;           /* objects that were not released */
    int queues, contexts;
    uint64_t properties; /* of the last queue */
    int parts;           /* of the last program's source */
    char options[256];   /* with which the last one was built */
    struct fake_launch last;
    int launches;
    void (*notify)(const char *text, const void *information, size_t bytes, void *user);
    void *notified;
} fake;

/* One platform with one GPU, and the functions. */
void fake_begin(void);
/* A GPU that computes exactly. */
struct cl_device_s fake_gpu(const char *name);
/* Does what was flushed. */
void fake_work(void);

#endif
