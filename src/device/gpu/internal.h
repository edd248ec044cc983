/* The parts of a gpu device, shared by device.c, memory.c, program.c, call.c and lists/. */
#ifndef TR_DEVICE_GPU_INTERNAL_H
#define TR_DEVICE_GPU_INTERNAL_H

#include "base/threads/timeline.h"
#include "device/gpu/gpu.h"

/* Memory of the device: a range of inaccessible addresses, and the block that it represents. */
struct gpu_block {
    uintptr_t begin;
    size_t bytes, reserved;
    void *block;
};

/* A table on the device, see gpu_table(). */
struct gpu_kept_table {
    void *contents; /* on the host, for comparison; the copy to the device reads it */
    size_t bytes;
    uint64_t hash; /* of the contents */
    uint64_t used; /* last use, by gpu->tick */
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

/* A command that was enqueued while the thread recorded a timeline. */
struct gpu_timed {
    void *event;
    struct tr_span_here what;
    int64_t before, after; /* when it was enqueued, by the host's clock */
};

struct gpu {
    tr_device base;
    struct tr_device_class class;
    const struct gpu_api *api;
    void *session;
    struct gpu_info info;
    int number;
    uint32_t threads;
    bool own_fma; /* the device's function is inexact: kernels use their own (kernels/fma.h) */

    struct gpu_block *blocks; /* ascending */
    int block_count;
    int last; /* the block that was found last */
    size_t held;

    void *scratch; /* pointer of the device */
    size_t scratch_bytes;
    struct gpu_kept_table *tables;
    int table_count;
    int32_t *table_place; /* where to find them by their hashes (memory.c); NULL: there is none yet */
    uint64_t tick;

    char *cache;   /* see struct tr_device_choice; or NULL */
    char *sources; /* see gpu_source() */
    int built;     /* programs that were built from source */
    struct gpu_program *programs;
    int program_count;
    struct gpu_kept_plan *plans; /* of convolutions */
    int plan_count;

    struct gpu_lists *lists; /* NULL: launches are enqueued one by one */

    struct gpu_mark *marks; /* not yet seen to be reached, ascending */
    int mark_count;
    uint64_t recorded, reached;

    const struct gpu_tile *tile; /* used by all products during the self-test; NULL: each product chooses */
    bool far;                    /* products take 64-bit distances, whatever their sizes; for tests */

    struct gpu_timed *timed; /* in the order of enqueuing */
    int timed_count;
    int64_t ahead_least,
        ahead_most; /* how far the device's clock is ahead of the host's; least > most: unknown */
};

static inline struct gpu *gpu_of(const tr_device *device)
{
    return (struct gpu *)(uintptr_t)device;
}

/* One more word in a hash that never leaves this process. */
static inline uint64_t gpu_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* device.c: opens device choice->number of an interface and tests its arithmetic. TR_EUNSUPPORTED where
   that is not exact, else errors of the interface. */
tr_status gpu_device_create(const struct gpu_api *api, const struct tr_device_choice *choice,
                            tr_device **out);

/* lists/lists.c: repeated launches are enqueued as one command. Starts this, where the device does it
 * correctly. */
void gpu_lists_create(struct gpu *gpu);
/* Enqueues a launch, at the latest before the next command that is not a launch. */
tr_status gpu_lists_launch(struct gpu *gpu, const struct gpu_launch *launch);
/* Enqueues all launches held back; call it before any other command. */
tr_status gpu_lists_end(struct gpu *gpu);
/* Call before freeing a block. */
void gpu_lists_forget(struct gpu *gpu, const void *block);
/* Drops launches held back; no command may be unfinished. */
void gpu_lists_release(struct gpu *gpu);

/* times.c: times on a device that is timed. Returns where the next command leaves its event; NULL: nothing
   is recorded. */
void **gpu_times_begin(struct gpu *gpu);
/* Call after that with the result of enqueuing: returns `status`. */
tr_status gpu_times_end(struct gpu *gpu, tr_status status);
/* Records all commands; they must be complete. */
tr_status gpu_times_take(struct gpu *gpu);
void gpu_times_release(struct gpu *gpu);

/* memory.c */
int64_t gpu_room(tr_device *device);
tr_status gpu_alloc(tr_device *device, size_t bytes, void **out);
void gpu_free(tr_device *device, void *memory);
tr_status gpu_to_device(tr_device *device, void *to, const void *from, size_t bytes);
tr_status gpu_to_host(tr_device *device, void *to, const void *from, size_t bytes);
tr_status gpu_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes);
/* The block of a pointer and the bytes between its beginning and the pointer. Pointers to other memory are
   bugs. */
void *gpu_find(struct gpu *gpu, const volatile void *pointer, size_t *at);
void gpu_memory_release(struct gpu *gpu);

/* program.c: a kernel, built when first needed. Borrowed for the life of the device. */
tr_status gpu_program_kernel(struct gpu *gpu, const char *source, const char *options, const char *kernel,
                             void **out);
void gpu_programs_release(struct gpu *gpu);

/* operations/convolution.c */
void gpu_plans_release(struct gpu *gpu);

/* sources.c: all texts of kernels, freed with tr_free(); among them the one of that name, NULL if there is
   none; the names of kernels/<name>.k, and NULL; and those of the texts that every program begins with. */
tr_status gpu_sources_unpack(char **out);
const char *gpu_source(const char *sources, const char *name);
extern const char *const gpu_source_names[];
extern const char *const gpu_prelude[];
extern const int gpu_prelude_count;

#endif
