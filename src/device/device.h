/* The device: memory and operations behind one vtable.
 *
 * Operations are enqueued in order and may run later; tr_device_wait() ends that. Memory of a device is
 * allocated, copied and waited for through it, and nothing above this layer touches it directly, even where
 * it happens to be host memory. A device knows nothing of networks, files or communication. A device is used
 * by one thread at a time.
 */
#ifndef TR_DEVICE_DEVICE_H
#define TR_DEVICE_DEVICE_H

#include "trireme/status.h"
#include "device/ops.h"

#include <stddef.h>

typedef struct tr_device tr_device;

#define TR_DEVICE_VERSION 1

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
    /* Returns when everything enqueued is done, with the first failure among it. */
    tr_status (*wait)(tr_device *device);
    /* See tr_device_peak(); NULL: not known. */
    double (*peak)(tr_device *device, double seconds);
    void (*destroy)(tr_device *device);
#define TR_DEVICE_SLOT(op) tr_status (*op)(tr_device * device, const struct tr_op_##op *arguments);
    TR_DEVICE_OPS(TR_DEVICE_SLOT)
#undef TR_DEVICE_SLOT
};

/* The head of every device's own structure. */
struct tr_device {
    const struct tr_device_class *class;
    char description[96]; /* for people: "cpu (avx512, 2 threads)" */
    int threads;
};

/* Makes a device by name ("ref", "cpu"). threads: 0 means one per core the process may use. isa: "" or NULL
   takes the best that the machine has, or "avx512", "avx2", "neon", "plain". Returned, destroy with
   tr_device_destroy(). TR_ENOTFOUND for an unknown name, TR_EUNSUPPORTED for an isa that this machine or
   build lacks (the message lists those it has). */
tr_status tr_device_create(const char *name, int threads, const char *isa, tr_device **out);
/* Accepts NULL, nulls the handle. */
void tr_device_destroy(tr_device **device);

/* The float operations per second that the device can reach at most (fused multiply-adds count as two),
   measured for about so many seconds; 0 where that is not known. */
double tr_device_peak(tr_device *device, double seconds);

tr_status tr_device_alloc(tr_device *device, size_t bytes, void **out);
void tr_device_free(tr_device *device, void *memory); /* accepts NULL memory */
/* Part of what was allocated is needed no more, and undefined afterwards; host memory goes back to the
 * system. */
void tr_device_discard(tr_device *device, void *memory, size_t bytes);
tr_status tr_device_to_device(tr_device *device, void *to, const void *from, size_t bytes);
tr_status tr_device_to_host(tr_device *device, void *to, const void *from, size_t bytes);
tr_status tr_device_wait(tr_device *device);
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
