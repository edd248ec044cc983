/* What the gpu device asks of an interface to accelerators: memory, copies, programs, launches, events.
 *
 * An implementation (a folder: opencl/, cuda/) translates and decides nothing: shapes, variants, scratch,
 * caches and checks are in device.c and operations/, which are the same for all. A session is one device with
 * one queue: what is enqueued is done in that order, but for copies that go beside it. It is used by one
 * thread at a time.
 *
 * What is enqueued may leave an event in `*event`, freed with free_event(), unless `event` is NULL.
 *
 * Handles are void pointers of the implementation. Failures: TR_ENOMEM where the device lacks memory,
 * TR_EPEER where the device is lost, with its name; TR_EUNSUPPORTED for what it cannot do.
 */
#ifndef TR_DEVICE_GPU_API_H
#define TR_DEVICE_GPU_API_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_API_VERSION 5

/* Threads that a group must be able to have. */
#define GPU_LEAST_THREADS 64

/* Groups that a launch has along axes 1 and 2, at most: CUDA allows no more. */
#define GPU_MOST_GROUPS 65535

/* What a device says about itself. */
struct gpu_info {
    char platform[96], name[96], vendor[96], driver[96];
    char place[24];      /* where it is plugged in, "0000:3b:00.0"; "": not known */
    uint64_t memory;     /* bytes that it has, */
    uint64_t allocation; /* that one allocation may have, */
    uint64_t shared;     /* that the threads of a group share */
    uint32_t group;      /* threads that a group may have */
    uint32_t units;      /* that work independently of each other */
    bool processor;      /* it is the processor of this host */
    bool unified;        /* its memory is the host's */
    bool keeps_programs; /* its driver does, from run to run; to give binaries it may compile again */
    bool lists;          /* launches that are enqueued as a list spare the host something */
    bool own_division;   /* it does not promise exact quotients and square roots: kernels bring theirs */
    bool slow;           /* its fused multiply-adds are functions, no instructions, and may err */
    char refusal[192];   /* what of exact arithmetic it does not promise; "": it promises all */
};

/* An argument of a kernel: a place in the device's memory (as a block and then, as an int64_t, the first
   element), or a value. */
struct gpu_argument {
    void *block;   /* of alloc; NULL with size 0: no memory */
    uint32_t size; /* bytes of `value`; 0: this is a block */
    unsigned char value[8];
};

struct gpu_launch {
    void *kernel;
    const char *name; /* for profiles and messages */
    const struct gpu_argument *arguments;
    int count;
    uint32_t threads;   /* of a group; what the kernel was built for */
    uint32_t groups[3]; /* none of them 0; along axes 1 and 2 at most GPU_MOST_GROUPS */
    uint32_t first[3];  /* the first group, as kernels number them; of axis 0 always 0 */
    void **event;
};

/* When the host enqueued something and the device began and ended it, in nanoseconds of the device's clock.
 */
struct gpu_times {
    int64_t queued, begin, end;
};

/* A program to build: the parts of its source, one after the other, and definitions. Or its binary, as
   binary() gave it. All borrowed for the call. */
struct gpu_program_source {
    const char *name;
    const char *const *parts;
    int count;
    const char *options; /* "-DTILE=4 -DVECTOR": definitions only, the api adds what exactness needs */
    const void *binary;  /* or NULL */
    size_t binary_bytes;
};

struct gpu_api {
    const char *name;  /* of the device kind: "opencl", "cuda" */
    int version;       /* GPU_API_VERSION */
    const char *exact; /* what build() adds to a source's options: what is kept of programs follows from it */
    /* Fills *out for device `number`, counted from 0 over all platforms, those first that are no processors.
       TR_ENOTFOUND: there are not so many; the message says how many, or what to install. */
    tr_status (*describe)(int number, struct gpu_info *out);
    /* `timed`: times() will be asked. */
    tr_status (*open)(int number, bool timed, void **session);
    void (*close)(void *session); /* waits for what is under way */
    /* Contents undefined, aligned to 64 bytes at least. Freeing does not wait: enqueued commands keep it. */
    tr_status (*alloc)(void *session, size_t bytes, void **block);
    void (*free)(void *session, void *block);
    /* Enqueued; the host side is borrowed until it is done. */
    tr_status (*to_device)(void *session, void *block, size_t at, const void *from, size_t bytes,
                           void **event);
    tr_status (*to_host)(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
    /* Behind all that was enqueued before, and beside what is enqueued after, which does not write there. */
    tr_status (*to_host_beside)(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
    /* Host memory that copies reach fastest. */
    tr_status (*alloc_pinned)(void *session, size_t bytes, void **memory);
    void (*free_pinned)(void *session, void *memory);
    /* TR_EFORMAT: the binary is none of this device, build from source; else the message has the compiler's.
     */
    tr_status (*build)(void *session, const struct gpu_program_source *source, void **program);
    void (*free_program)(void *session, void *program);
    /* The binary of a program, freed with tr_free(). */
    tr_status (*binary)(void *session, void *program, void **binary, size_t *bytes);
    /* A kernel of a program, freed with free_kernel. */
    tr_status (*kernel)(void *session, void *program, const char *name, void **kernel);
    void (*free_kernel)(void *session, void *kernel);
    /* Enqueues; arguments are borrowed for the call. */
    tr_status (*launch)(void *session, const struct gpu_launch *launch);
    /* Launches to be enqueued as one, in this order, as often as wanted and also before they are done once;
       their events are not filled. Borrowed for the call, but for kernels and blocks, which must be there as
       long as the list. TR_EUNSUPPORTED: the device has no lists. NULL: none has, and the next two are
       NULL. */
    tr_status (*build_list)(void *session, const struct gpu_launch *launches, int count, void **list);
    tr_status (*launch_list)(void *session, void *list);
    void (*free_list)(void *session, void *list); /* nothing of it is under way */
    /* Returns when all is done, with the first failure. */
    tr_status (*wait)(void *session);
    /* A mark after all that was enqueued, copies beside the queue included, and whether the device came to
     * it; started without waiting. */
    tr_status (*record)(void *session, void **event);
    tr_status (*reached)(void *session, void *event, bool *out);
    /* Returns when the device has come to a mark, with the failure that kept it from that. */
    tr_status (*wait_for)(void *session, void *event);
    void (*free_event)(void *session, void *event);
    /* Of the event of something that is done, in a session that is timed. */
    tr_status (*times)(void *session, void *event, struct gpu_times *out);
};

extern const struct gpu_api gpu_api_opencl, gpu_api_cuda;

#endif
