/* What the gpu device needs from an interface to accelerators: memory, copies, programs, launches, events.
 *
 * An implementation (a folder: opencl/, cuda/) translates and decides nothing: shapes, variants, scratch,
 * caches and checks are in device.c and operations/, which are the same for all. A session is one device
 * with one queue: commands run in the order in which they were enqueued, except copies beside the queue.
 * It is used by one thread at a time.
 *
 * A command may leave an event in `*event`, freed with free_event(), unless `event` is NULL.
 *
 * Handles are void pointers of the implementation. Failures: TR_ENOMEM where the device lacks memory,
 * TR_EPEER where the device is lost, with its name; TR_EUNSUPPORTED for features that it lacks.
 */
#ifndef TR_DEVICE_GPU_API_H
#define TR_DEVICE_GPU_API_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_API_VERSION 6

/* Least group size that a device must support. */
#define GPU_LEAST_THREADS 64

/* Most groups of a launch along axes 1 and 2: CUDA's limit. */
#define GPU_MOST_GROUPS 65535

/* Properties that a device reports. */
struct gpu_info {
    char platform[96], name[96], vendor[96], driver[96];
    char place[24];      /* bus address, "0000:3b:00.0"; "": not known */
    uint64_t memory;     /* bytes of memory, */
    uint64_t allocation; /* most bytes of one allocation, */
    uint64_t shared;     /* bytes that the threads of a group share */
    uint32_t group;      /* most threads of a group */
    uint32_t units;      /* compute units */
    bool processor;      /* it is a processor of this host */
    bool unified;        /* it shares the host's memory */
    bool keeps_programs; /* its driver keeps programs between runs; given binaries it may compile again */
    bool lists;          /* enqueuing launches as a list saves time on the host */
    bool own_division;   /* it does not promise exact quotients and square roots: kernels compute their own */
    bool slow;           /* its fused multiply-adds are functions, not instructions, and may be inexact */
    char refusal[192];   /* arithmetic that it does not compute exactly; "": none */
};

/* An argument of a kernel: a place in the device's memory (passed as a block and, as an int64_t, the index
   of the first element), or a value. */
struct gpu_argument {
    void *block;   /* from alloc; NULL with size 0: no memory */
    uint32_t size; /* bytes of `value`; 0: this is a block */
    unsigned char value[8];
};

struct gpu_launch {
    void *kernel;
    const char *name; /* for profiles and messages */
    const struct gpu_argument *arguments;
    int count;
    uint32_t threads;   /* of a group; the number for which the kernel was built */
    uint32_t groups[3]; /* none of them 0; along axes 1 and 2 at most GPU_MOST_GROUPS */
    uint32_t first[3];  /* the number of the first group; along axis 0 always 0 */
    void **event;
};

/* When the host enqueued a command and when the device began and ended it, in nanoseconds of the device's
   clock. */
struct gpu_times {
    int64_t queued, begin, end;
};

/* A program to build: the parts of its source, one after the other, and definitions; or its binary, from
   binary(). All borrowed for the call. */
struct gpu_program_source {
    const char *name;
    const char *const *parts;
    int count;
    const char *options; /* "-DTILE=4 -DVECTOR": only definitions, the api adds the options for exactness */
    const void *binary;  /* or NULL */
    size_t binary_bytes;
};

struct gpu_api {
    const char *name;  /* name of the device kind: "opencl", "cuda" */
    int version;       /* GPU_API_VERSION */
    const char *exact; /* options that build() adds to those of a source; part of the key of kept programs */
    /* Fills *out for device `number`, counted from 0 over all platforms, with devices that are not
       processors first. TR_ENOTFOUND: there are fewer; the message says how many, or what to install. */
    tr_status (*describe)(int number, struct gpu_info *out);
    /* `timed`: times() will be called. */
    tr_status (*open)(int number, bool timed, void **session);
    void (*close)(void *session); /* waits for all commands */
    /* Contents undefined, aligned to at least 64 bytes. Freeing does not wait: enqueued commands keep the
       block. */
    tr_status (*alloc)(void *session, size_t bytes, void **block);
    void (*free)(void *session, void *block);
    /* Enqueued; the host side is borrowed until the copy is complete. */
    tr_status (*to_device)(void *session, void *block, size_t at, const void *from, size_t bytes,
                           void **event);
    tr_status (*to_host)(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
    /* After all commands enqueued so far, and beside later ones, which must not write there. */
    tr_status (*to_host_beside)(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
    /* Host memory with the fastest copies. */
    tr_status (*alloc_pinned)(void *session, size_t bytes, void **memory);
    void (*free_pinned)(void *session, void *memory);
    /* TR_EFORMAT: the binary does not fit this device, build from source; otherwise the message includes
       the compiler's. */
    tr_status (*build)(void *session, const struct gpu_program_source *source, void **program);
    void (*free_program)(void *session, void *program);
    /* The binary of a program, freed with tr_free(). */
    tr_status (*binary)(void *session, void *program, void **binary, size_t *bytes);
    /* A kernel of a program, freed with free_kernel. */
    tr_status (*kernel)(void *session, void *program, const char *name, void **kernel);
    void (*free_kernel)(void *session, void *kernel);
    /* Enqueues; arguments are borrowed for the call. */
    tr_status (*launch)(void *session, const struct gpu_launch *launch);
    /* Launches to enqueue as one command, in this order, any number of times, also while an earlier run is
       unfinished; their events are not filled. Borrowed for the call, except kernels and blocks, which
       must exist as long as the list. TR_EUNSUPPORTED: the device has no lists. NULL: no device has, and
       the next three slots are NULL. */
    tr_status (*build_list)(void *session, const struct gpu_launch *launches, int count, void **list);
    tr_status (*launch_list)(void *session, void *list);
    /* Replaces launch number `index` of a list by one of the same kernel, group size and first group. Runs
       already enqueued keep the old launch. Blocks of the old launch need not exist any more. NULL: lists
       cannot be changed. */
    tr_status (*change_list)(void *session, void *list, int index, const struct gpu_launch *launch);
    void (*free_list)(void *session, void *list); /* the list must not be running */
    /* Returns when all commands are complete, with the first failure. */
    tr_status (*wait)(void *session);
    /* A mark after all commands so far, including copies beside the queue; and whether the device has
     * reached it, without waiting.
     */
    tr_status (*record)(void *session, void **event);
    tr_status (*reached)(void *session, void *event, bool *out);
    /* Returns when the device has reached a mark, with the failure that prevented it. */
    tr_status (*wait_for)(void *session, void *event);
    void (*free_event)(void *session, void *event);
    /* The times of an event whose command is complete, in a timed session. */
    tr_status (*times)(void *session, void *event, struct gpu_times *out);
};

extern const struct gpu_api gpu_api_opencl, gpu_api_cuda;

#endif
