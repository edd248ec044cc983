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

/* A position in the order of the enqueued work. */
typedef struct tr_event {
    uint64_t number;
} tr_event;

/* Implementations. Operation slots are filled from TR_DEVICE_OPS. A NULL slot means that the device
   refuses the operation; host devices use the one of `ref` instead. */
struct tr_device_class {
    const char *name;
    int version; /* TR_DEVICE_VERSION */
    /* Device memory is host memory and all operations are complete when their function returns, so that
       tr_device_host_view() and tr_device_adopt() need no copies. */
    bool host_memory;
    /* Device memory, aligned to 64 bytes, contents undefined. Freed with `free`. */
    tr_status (*alloc)(tr_device *device, size_t bytes, void **out);
    void (*free)(tr_device *device, void *memory);
    /* Copies in order with the operations; the host side is borrowed until wait. */
    tr_status (*to_device)(tr_device *device, void *to, const void *from, size_t bytes);
    tr_status (*to_host)(tr_device *device, void *to, const void *from, size_t bytes);
    /* tr_device_to_host_beside(). NULL: `to_host` is used. */
    tr_status (*to_host_beside)(tr_device *device, void *to, const void *from, size_t bytes);
    /* Returns when everything enqueued is done, with the first failure among it. */
    tr_status (*wait)(tr_device *device);
    /* tr_device_record() and tr_device_reached(). NULL: all work is complete when its function returns. */
    tr_status (*record)(tr_device *device, tr_event *out);
    tr_status (*reached)(tr_device *device, tr_event event, bool *out);
    /* tr_device_wait_for(). NULL: `wait` is used. */
    tr_status (*wait_for)(tr_device *device, tr_event event);
    /* tr_device_alloc_pinned(). NULL: ordinary host memory is used. */
    tr_status (*alloc_pinned)(tr_device *device, size_t bytes, void **out);
    void (*free_pinned)(tr_device *device, void *memory);
    /* tr_device_create_like(). NULL: the device is opened by its name. */
    tr_status (*create_like)(const tr_device *device, int threads, tr_device **out);
    /* See tr_device_room(); NULL: not known. */
    int64_t (*room)(tr_device *device);
    /* See tr_device_memory(); NULL: it has no separate memory. */
    int64_t (*memory)(const tr_device *device);
    /* See tr_device_set_idle(); NULL: its threads cannot do other work. */
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
    /* Work that is enqueued within a span of a timeline is recorded there: in a lane with the name of the
       device, as a span with the same activity and name and the times that the device took. */
    bool timed;
    bool slow; /* software emulates missing instructions: the same bits, more slowly */
};

/* Which device, and its options. A kind ignores members that it does not know. */
struct tr_device_choice {
    const char *name;  /* a kind, and which of that kind where there are several: "opencl:1" */
    int number;        /* that number, from 0; tr_device_open() takes it from the name */
    int threads;       /* 0: one per core that the process may use */
    const char *isa;   /* "" or NULL: the best of the machine */
    const char *cache; /* directory where results of slow work (programs) are kept for later runs, made
                          when needed; NULL: nothing is kept */
    bool timed;        /* see struct tr_device; synchronous devices may ignore it */
};

/* A kind of device, chosen by its name. */
struct tr_device_kind {
    TR_ENTRY;
    /* As tr_device_open(). NULL where there is `resolve`. */
    tr_status (*create)(const struct tr_device_choice *choice, tr_device **out);
    /* For a name whose devices belong to other kinds: which kind and number `*number` stands for.
       TR_ENOTFOUND: there is no such device. NULL: devices are of this kind. */
    tr_status (*resolve)(int *number, const struct tr_device_kind **kind);
    /* Describes the device that `create` would open at `number`, for people, without creating it. TR_OK,
       or TR_EUNSUPPORTED with the reason why it cannot be used; TR_ENOTFOUND, with the reason, where there
       is none. NULL: there is exactly one. */
    tr_status (*describe)(int number, char *text, size_t size);
    /* The number of devices, from 0, to distribute among the ranks of a host that name none. NULL: there
     * is one.
     */
    int (*count)(void);
};

/* All kinds, the default first; its entries are of struct tr_device_kind. */
extern const struct tr_registry tr_device_kinds;

/* Makes a device by name ("ref", "cpu"). threads: 0 means one per core the process may use. isa: "" or NULL
   takes the best that the machine has, or "avx512", "avx2", "neon", "plain", "sse2". Returned, destroy with
   tr_device_destroy(). TR_ENOTFOUND for an unknown name, TR_EUNSUPPORTED for an isa that this machine or
   build lacks (the message lists those it has). */
tr_status tr_device_create(const char *name, int threads, const char *isa, tr_device **out);
/* The same with all options. Borrowed for the call. */
tr_status tr_device_open(const struct tr_device_choice *choice, tr_device **out);
/* The name that a device opened by `name` would have. As tr_device_open(), but the machine's devices are
 * not looked at.
 */
tr_status tr_device_find(const char *name, char out[TR_DEVICE_NAME]);
/* Another device of the kind of `device`, with another number of threads. */
tr_status tr_device_create_like(const tr_device *device, int threads, tr_device **out);
/* Accepts NULL, nulls the handle. */
void tr_device_destroy(tr_device **device);

/* The peak number of float operations per second (fused multiply-adds count as two), measured for about so
   many seconds; 0 where it is not known. */
double tr_device_peak(tr_device *device, double seconds);

/* Sets work of some microseconds per call that the device's threads do while they wait for each other
   (base/threads/team.h), until it is replaced by NULL. The caller does that before the device is
   destroyed. false: the threads do not wait, or have such work already. */
bool tr_device_set_idle(tr_device *device, tr_team_idle idle, void *arguments);

/* Most bytes of one more allocation, INT64_MAX where that is not known. */
int64_t tr_device_room(tr_device *device);
/* The bytes of the device's own memory, used or not; 0: it uses its host's memory. */
int64_t tr_device_memory(const tr_device *device);
tr_status tr_device_alloc(tr_device *device, size_t bytes, void **out);
void tr_device_free(tr_device *device, void *memory); /* accepts NULL memory */
/* Releases a part of an allocation, whose contents are then undefined; host memory returns to the system. */
void tr_device_discard(tr_device *device, void *memory, size_t bytes);
tr_status tr_device_to_device(tr_device *device, void *to, const void *from, size_t bytes);
tr_status tr_device_to_host(tr_device *device, void *to, const void *from, size_t bytes);
/* The same, ordered after the work enqueued so far and concurrent with later work, which must not write to
   `from` until the copy was waited for. */
tr_status tr_device_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes);
tr_status tr_device_wait(tr_device *device);
/* Waits before freeing memory that the device may be using: ignores failures, and keeps the thread's
   message. */
void tr_device_finish(tr_device *device);
/* Marks the end of the work enqueued so far. Reports, without waiting, whether all work before a mark is
   complete, with its first failure. */
tr_status tr_device_record(tr_device *device, tr_event *out);
tr_status tr_device_reached(tr_device *device, tr_event event, bool *out);
/* Returns when all work before a mark is complete, with its first failure; later work continues. */
tr_status tr_device_wait_for(tr_device *device, tr_event event);
/* Host memory for copies that run beside operations, aligned to 64 bytes; freed with
   tr_device_free_pinned(), which accepts NULL memory. */
tr_status tr_device_alloc_pinned(tr_device *device, size_t bytes, void **out);
void tr_device_free_pinned(tr_device *device, void *memory);
/* Access without a copy, where the device allows it: the host's address of device memory, or of host
   memory for the device's operations to read. NULL where a copy is needed. Valid as long as the memory;
   contents as of the last operation. */
const void *tr_device_host_view(const tr_device *device, const void *memory);
const void *tr_device_adopt(const tr_device *device, const void *host);

/* One checking wrapper per operation: tr_device_dense_forward(device, &arguments), ... */
#define TR_DEVICE_WRAPPER(op) tr_status tr_device_##op(tr_device *device, const struct tr_op_##op *arguments);
TR_DEVICE_OPS(TR_DEVICE_WRAPPER)
#undef TR_DEVICE_WRAPPER

#endif
