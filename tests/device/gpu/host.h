/* An interface to a device that is the host: memory is the host's, launches are done at once, and only the
 * kernels fill, scale, add and multiply are known. What a gpu device does besides computing is tested on it
 * without a driver. It is not asked whether it computes exactly: a program that has host.c has a self-test
 * that asks nothing.
 */
#ifndef TESTS_DEVICE_GPU_HOST_H
#define TESTS_DEVICE_GPU_HOST_H

#include "device/gpu/internal.h"

extern const struct gpu_api gpu_api_host;

/* What may be set before a device is opened, or while it is in use. */
extern struct host {
    struct gpu_info info;
    const char *fails; /* the function of the interface that fails, NULL: none, */
    int after;         /* at its call number `after` from now on, counted from 0, */
    tr_status how;     /* in this way */
    bool late;         /* events are reached only when they are waited for */
    int64_t ahead;     /* nanoseconds by which the device's clock is ahead of the host's */
    /* What was done, and what there is now. */
    int launches, copies, waits, builds, from_binary, kernels, self_tests;
    bool running; /* a list may be */
    int blocks, events, programs, lists, pinned;
    char options[256]; /* of the last program that was built */
    struct gpu_launch last;
    struct gpu_argument argument[GPU_ARGUMENTS]; /* of the last launch */
} host;

/* Sets everything to what is usual. */
void host_begin(void);
/* Opens it; `cache` may be NULL. */
tr_device *host_open(const char *cache, bool timed);

#endif
