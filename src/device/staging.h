/* Staging buffers: numbers that a device computes with, and that code with access to host memory only
 * (ranks, files) reads and writes.
 *
 * Where the device's memory is host memory, the two sides of a buffer are the same and nothing is copied.
 * Elsewhere it has a host side, and copies between the sides are enqueued like operations: the host side
 * may be accessed once tr_device_wait() or an event shows that they are complete.
 */
#ifndef TR_DEVICE_STAGING_H
#define TR_DEVICE_STAGING_H

#include "device/device.h"

/* The kind of memory. */
enum tr_memory {
    TR_MEMORY_DEVICE, /* of the device alone */
    TR_MEMORY_HOST,
    TR_MEMORY_PINNED, /* of the host, pinned, so that a device copies concurrently with its operations */
    TR_MEMORY_WINDOW  /* shared by the ranks of a host, see tr_window_create() */
};

struct tr_staging {
    tr_device *device;
    int64_t floats;
    float *data; /* for the device */
    float *host; /* for host code; `data` where that is host memory; NULL before tr_staging_open() */
    enum tr_memory memory; /* of `host`; TR_MEMORY_DEVICE: not made yet */
    bool owns_data, owns_host;
};

/* Makes memory for `floats` floats (0 allowed), contents undefined. `window`, or NULL, is host memory that
   the ranks of a host share: it becomes the host side and, where possible, the device's side too; borrowed
   for the life of the buffer, as is the device. Released with tr_staging_release(), also after a failure.
   TR_ENOMEM. */
tr_status tr_staging_make(tr_device *device, int64_t floats, float *window, struct tr_staging *out);
/* A buffer over existing memory of the device, borrowed for the life of the buffer. */
void tr_staging_over(tr_device *device, int64_t floats, float *data, struct tr_staging *out);
/* Frees all that the buffer owns. No copy may be unfinished. Accepts zeros. */
void tr_staging_release(struct tr_staging *buffer);
/* Ensures that there is a host side, which the functions below need. TR_ENOMEM. */
tr_status tr_staging_open(struct tr_staging *buffer);
/* Whether both sides are the same memory. */
static inline bool tr_staging_is_direct(const struct tr_staging *buffer)
{
    return buffer->host == buffer->data;
}
/* Bytes that the buffer owns, on the device and on the host. */
size_t tr_staging_memory(const struct tr_staging *buffer);
/* Of these, the bytes on the host where the device has separate memory. */
size_t tr_staging_host_memory(const struct tr_staging *buffer);

/* Enqueue copies of the floats [begin, end) from one side to the other. */
tr_status tr_staging_to_host(const struct tr_staging *buffer, int64_t begin, int64_t end);
/* See tr_device_to_host_beside(). */
tr_status tr_staging_to_host_beside(const struct tr_staging *buffer, int64_t begin, int64_t end);
tr_status tr_staging_to_device(const struct tr_staging *buffer, int64_t begin, int64_t end);

#endif
