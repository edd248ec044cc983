/* The parts of a gpu device: what device.c, memory.c, program.c, lists.c and call.c share. */
#ifndef TR_DEVICE_GPU_INTERNAL_H
#define TR_DEVICE_GPU_INTERNAL_H

#include "base/threads/timeline.h"
#include "device/gpu/gpu.h"

/* Memory of the device: a range of addresses without access, and the block that it stands for. */
struct gpu_block {
    uintptr_t begin;
    size_t bytes, reserved;
    void *block;
};

/* A table on the device, see gpu_table(). */
struct gpu_kept_table {
    void *contents; /* on the host, for comparing; copies to the device come from here */
    size_t bytes;
    uint64_t used; /* when, by gpu->tick */
    void *memory;  /* pointer of the device */
};

struct gpu_kernel {
    char *name;
    void *handle;
};

struct gpu_program {
    char *source, *options;
    void *handle;
    struct gpu_kernel *kernels;
    int kernel_count;
};

struct gpu_mark {
    uint64_t number;
    void *event;
};

/* Something that was enqueued while a thread recorded what it did. */
struct gpu_timed {
    void *event;
    struct tr_span_here what;
    int64_t before, after; /* it was enqueued, by the host's clock */
};

struct gpu {
    tr_device base;
    struct tr_device_class class;
    const struct gpu_api *api;
    void *session;
    struct gpu_info info;
    int number;
    uint32_t threads;
    bool own_fma; /* the device's function errs: kernels bring theirs (kernels/fma.h) */

    struct gpu_block *blocks; /* ascending */
    int block_count;
    int last; /* the block that was found last */
    size_t held;

    void *scratch; /* pointer of the device */
    size_t scratch_bytes;
    struct gpu_kept_table *tables;
    int table_count;
    uint64_t tick;

    char *cache; /* see struct tr_device_choice; or NULL */
    int built;   /* programs that were built from source */
    struct gpu_program *programs;
    int program_count;
    struct gpu_kept_plan *plans; /* of convolutions */
    int plan_count;

    struct gpu_lists *lists; /* NULL: launches are enqueued one by one */

    struct gpu_mark *marks; /* that were not seen to be reached, ascending */
    int mark_count;
    uint64_t recorded, reached;

    const struct gpu_tile *tile; /* that all products take while the device is tested; NULL: as they choose */

    struct gpu_timed *timed; /* in the order in which it was enqueued */
    int timed_count;
    int64_t ahead_least,
        ahead_most; /* what the device's clock is ahead of the host's; least > most: unknown */
};

static inline struct gpu *gpu_of(const tr_device *device)
{
    return (struct gpu *)(uintptr_t)device;
}

/* device.c: opens device choice->number of an interface and tests its arithmetic. TR_EUNSUPPORTED where that
   is not exact, else what the interface says. */
tr_status gpu_device_create(const struct gpu_api *api, const struct tr_device_choice *choice,
                            tr_device **out);

/* lists.c: launches that come again are enqueued as one. Begins with that, where the device does it rightly.
 */
void gpu_lists_create(struct gpu *gpu);
/* Enqueues a launch, at the latest when the next thing that is no launch is. */
tr_status gpu_lists_launch(struct gpu *gpu, const struct gpu_launch *launch);
/* Something else comes: what was held back is enqueued. */
tr_status gpu_lists_end(struct gpu *gpu);
/* A block is about to be freed. */
void gpu_lists_forget(struct gpu *gpu, const void *block);
/* Nothing is under way, and what was held back is dropped. */
void gpu_lists_release(struct gpu *gpu);

/* times.c: how long things take on a device that is timed. Where the event of what is about to be enqueued
   goes; NULL: nothing is recorded. */
void **gpu_times_begin(struct gpu *gpu);
/* And whether it was enqueued: returns `status`. */
tr_status gpu_times_end(struct gpu *gpu, tr_status status);
/* All that was enqueued is done: it is recorded. */
tr_status gpu_times_take(struct gpu *gpu);
void gpu_times_release(struct gpu *gpu);

/* memory.c */
int64_t gpu_room(tr_device *device);
tr_status gpu_alloc(tr_device *device, size_t bytes, void **out);
void gpu_free(tr_device *device, void *memory);
tr_status gpu_to_device(tr_device *device, void *to, const void *from, size_t bytes);
tr_status gpu_to_host(tr_device *device, void *to, const void *from, size_t bytes);
tr_status gpu_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes);
/* The block of a pointer and the bytes between its beginning and the pointer. Pointers that are not the
   device's are bugs. */
void *gpu_find(struct gpu *gpu, const volatile void *pointer, size_t *at);
void gpu_memory_release(struct gpu *gpu);

/* program.c: a kernel, built when it is first wanted. Borrowed for the life of the device. */
tr_status gpu_program_kernel(struct gpu *gpu, const char *source, const char *options, const char *kernel,
                             void **out);
void gpu_programs_release(struct gpu *gpu);

/* operations/convolution.c */
void gpu_plans_release(struct gpu *gpu);

/* sources.c: the text of kernels/<name>.k, NULL if there is none; all the names, and NULL; and what comes
   before the text in every program. */
const char *gpu_source(const char *name);
extern const char *const gpu_source_names[];
extern const char *const gpu_prelude[];
extern const int gpu_prelude_count;

#endif
