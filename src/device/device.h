/* The device: memory and operations after one vtable.
 *
 * Operations are enqueued in order and may run later; tr_device_wait() ends that. Memory of a device is
 * allocated, copied and waited for through it, and nothing above this layer touches it directly, even where
 * it happens to be host memory. A device knows nothing of networks, files or communication. A device is used
 * by one thread at a time.
 */
#ifndef TR_DEVICE_DEVICE_H
#define TR_DEVICE_DEVICE_H

#include "base/options/registry.h"
#include "base/threads/team.h"
#include "device/ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_device tr_device;

#define TR_DEVICE_VERSION 4

/* A moment in the order of what a device was given to do. */
typedef struct tr_event {
    uint64_t number;
} tr_event;

/* Implementations. Operation slots are filled from TR_DEVICE_OPS; a slot that is NULL means the device
   refuses that operation, except that host devices take `ref`'s. */
struct tr_device_class {
    const char *name;
    int version; /* TR_DEVICE_VERSION */
    /* Device memory is host memory and all operations are done when their function returns, so that
       tr_device_host_view() and tr_device_adopt() need no copies. */
    bool host_memory;
    /* Device memory, aligned to 64 bytes, contents undefined. Freed with `free`. */
    tr_status (*alloc)(tr_device *device, size_t bytes, void **out);
    void (*free)(tr_device *device, void *memory);
    /* Copies in order with the operations; the host side is borrowed until wait. */
    tr_status (*to_device)(tr_device *device, void *to, const void *from, size_t bytes);
    tr_status (*to_host)(tr_device *device, void *to, const void *from, size_t bytes);
    /* tr_device_to_host_beside(). NULL: `to_host` will do. */
    tr_status (*to_host_beside)(tr_device *device, void *to, const void *from, size_t bytes);
    /* Returns when everything enqueued is done, with the first failure among it. */
    tr_status (*wait)(tr_device *device);
    /* tr_device_record() and tr_device_reached(). NULL: all is done when its function returns. */
    tr_status (*record)(tr_device *device, tr_event *out);
    tr_status (*reached)(tr_device *device, tr_event event, bool *out);
    /* tr_device_wait_for(). NULL: `wait` will do. */
    tr_status (*wait_for)(tr_device *device, tr_event event);
    /* tr_device_alloc_pinned(). NULL: any host memory will do. */
    tr_status (*alloc_pinned)(tr_device *device, size_t bytes, void **out);
    void (*free_pinned)(tr_device *device, void *memory);
    /* tr_device_create_like(). NULL: it is opened by its name. */
    tr_status (*create_like)(const tr_device *device, int threads, tr_device **out);
    /* See tr_device_room(); NULL: not known. */
    int64_t (*room)(tr_device *device);
    /* See tr_device_memory(); NULL: it has none. */
    int64_t (*memory)(const tr_device *device);
    /* See tr_device_set_idle(); NULL: its threads do nothing else. */
    bool (*set_idle)(tr_device *device, tr_team_idle idle, void *arguments);
    /* See tr_device_peak(); NULL: not known. */
    double (*peak)(tr_device *device, double seconds);
    void (*destroy)(tr_device *device);
#define TR_DEVICE_SLOT(op) tr_status (*op)(tr_device * device, const struct tr_op_##op *arguments);
    TR_DEVICE_OPS(TR_DEVICE_SLOT)
#undef TR_DEVICE_SLOT
};

#define TR_DEVICE_NAME 64

/* The head of every device's own structure. */
struct tr_device {
    const struct tr_device_class *class;
    char description[96];      /* for people: "cpu (avx512, 2 threads)" */
    char name[TR_DEVICE_NAME]; /* its kind, with its number where there are several */
    int threads;
    /* What it is given to do in a span of a timeline is recorded there, in a lane with the name of the
       device, as a span with the same activity and name and the times that the device took. */
    bool timed;
    bool slow; /* functions do what instructions do on others: the same bits, later */
};

/* Which device, and how. Members that a kind does not know it ignores. */
struct tr_device_choice {
    const char *name;  /* a kind, and which of that kind where there are several: "opencl:1" */
    int number;        /* the latter, from 0; tr_device_open() takes it from the name */
    int threads;       /* 0: one per core that the process may use */
    const char *isa;   /* "" or NULL: the best that the machine has */
    const char *cache; /* directory where what takes long to make (programs) is kept for other runs, made
                          when needed; NULL: nothing is kept */
    bool timed;        /* see struct tr_device; devices that do all where they are asked to need not */
};

/* A kind of device, by which one is chosen. */
struct tr_device_kind {
    TR_ENTRY;
    /* As tr_device_open(). NULL where there is `resolve`. */
    tr_status (*create)(const struct tr_device_choice *choice, tr_device **out);
    /* A name for devices that other kinds have: which kind and number there stands for `*number`.
       TR_ENOTFOUND: none does. NULL: devices are of this kind. */
    tr_status (*resolve)(int *number, const struct tr_device_kind **kind);
    /* What `create` would find at `number`, for people, without making it: TR_OK, or TR_EUNSUPPORTED with the
       reason why it cannot be used; TR_ENOTFOUND, with the reason, where there is none. NULL: there is one.
     */
    tr_status (*describe)(int number, char *text, size_t size);
    /* The devices among which ranks of a host are dealt out that name none: numbers from 0. NULL: there is
     * one. */
    int (*count)(void);
};

/* All kinds, the default first; its entries are of struct tr_device_kind. */
extern const struct tr_registry tr_device_kinds;

/* Makes a device by name ("ref", "cpu"). threads: 0 means one per core the process may use. isa: "" or NULL
   takes the best that the machine has, or "avx512", "avx2", "neon", "plain", "sse2". Returned, destroy with
   tr_device_destroy(). TR_ENOTFOUND for an unknown name, TR_EUNSUPPORTED for an isa that this machine or
   build lacks (the message lists those it has). */
tr_status tr_device_create(const char *name, int threads, const char *isa, tr_device **out);
/* The same with all that can be chosen. Borrowed for the call. */
tr_status tr_device_open(const struct tr_device_choice *choice, tr_device **out);
/* The name that a device opened by `name` would have. As tr_device_open(), but that what is there is not
 * looked at. */
tr_status tr_device_find(const char *name, char out[TR_DEVICE_NAME]);
/* Another one of the kind of `device`, with other threads. */
tr_status tr_device_create_like(const tr_device *device, int threads, tr_device **out);
/* Accepts NULL, nulls the handle. */
void tr_device_destroy(tr_device **device);

/* The float operations per second that the device can reach at most (fused multiply-adds count as two),
   measured for about so many seconds; 0 where that is not known. */
double tr_device_peak(tr_device *device, double seconds);

/* Work of some microseconds per call that the device's threads do from now on while they wait for each other
   (base/threads/team.h), until NULL takes the place of `idle`; its setter ends it, before the device is
   destroyed. false: they do not wait, or have such work already. */
bool tr_device_set_idle(tr_device *device, tr_team_idle idle, void *arguments);

/* The bytes that one more allocation may have, INT64_MAX where that is not known. */
int64_t tr_device_room(tr_device *device);
/* The bytes of memory that belongs to the device and not to its host, used or not; 0: what it takes is the
 * host's. */
int64_t tr_device_memory(const tr_device *device);
tr_status tr_device_alloc(tr_device *device, size_t bytes, void **out);
void tr_device_free(tr_device *device, void *memory); /* accepts NULL memory */
/* Part of what was allocated is needed no more, and undefined afterwards; host memory goes back to the
 * system. */
void tr_device_discard(tr_device *device, void *memory, size_t bytes);
tr_status tr_device_to_device(tr_device *device, void *to, const void *from, size_t bytes);
tr_status tr_device_to_host(tr_device *device, void *to, const void *from, size_t bytes);
/* The same after what was enqueued before and beside what is enqueued after it, which does not write to
   `from` before that was waited for. */
tr_status tr_device_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes);
tr_status tr_device_wait(tr_device *device);
/* The same for who frees what the device may still be at: however that ends, and the thread's message stays
   as it was. */
void tr_device_finish(tr_device *device);
/* Marks the end of what has been enqueued so far; and tells, without waiting, whether all before a mark is
   done, with the first failure among it. */
tr_status tr_device_record(tr_device *device, tr_event *out);
tr_status tr_device_reached(tr_device *device, tr_event event, bool *out);
/* Returns when all before a mark is done, with the first failure among it; what was enqueued after it goes
   on. */
tr_status tr_device_wait_for(tr_device *device, tr_event event);
/* Host memory for copies that go on beside operations, aligned to 64 bytes; freed with
   tr_device_free_pinned(), which accepts NULL memory. */
tr_status tr_device_alloc_pinned(tr_device *device, size_t bytes, void **out);
void tr_device_free_pinned(tr_device *device, void *memory);
/* Reading without a copy, where the device allows that: the host's address of device memory, or of host
   memory for the device's operations to read. NULL where a copy is needed. Valid as long as the memory;
   contents as of the last operation. */
const void *tr_device_host_view(const tr_device *device, const void *memory);
const void *tr_device_adopt(const tr_device *device, const void *host);

/* One checking wrapper per operation: tr_device_dense_forward(device, &arguments), ... */
#define TR_DEVICE_WRAPPER(op) tr_status tr_device_##op(tr_device *device, const struct tr_op_##op *arguments);
TR_DEVICE_OPS(TR_DEVICE_WRAPPER)
#undef TR_DEVICE_WRAPPER

#endif
