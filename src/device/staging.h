/* Staging buffers: numbers that a device computes with and others read and write (ranks, files), who can
 * reach host memory only.
 *
 * Where the device's memory is host memory, the two sides of a buffer are one and nothing is ever copied.
 * Elsewhere it has a host side, and copies between the sides are enqueued like operations: the host side may
 * be touched once tr_device_wait() or an event has said that they are done.
 */
#ifndef TR_DEVICE_STAGING_H
#define TR_DEVICE_STAGING_H

#include "device/device.h"

/* Where memory lies. */
enum tr_memory {
    TR_MEMORY_DEVICE, /* of the device alone */
    TR_MEMORY_HOST,
    TR_MEMORY_PINNED, /* of the host, from which a device copies beside its operations */
    TR_MEMORY_WINDOW  /* shared by the ranks of a host, see tr_window_create() */
};

struct tr_staging {
    tr_device *device;
    int64_t floats;
    float *data; /* for the device */
    float *host; /* for everybody; `data` where that is host memory; NULL before tr_staging_open() */
    enum tr_memory memory; /* of `host`; TR_MEMORY_DEVICE: there is none yet */
    bool owns_data, owns_host;
};

/* Makes memory for `floats` floats (0 allowed), contents undefined. `window`, or NULL, is host memory that
   the ranks of a host share: it becomes the host side, and the device's too where that can be; borrowed for
   the life of the buffer, as is the device. Released with tr_staging_release(), also after a failure.
   TR_ENOMEM. */
tr_status tr_staging_make(tr_device *device, int64_t floats, float *window, struct tr_staging *out);
/* A buffer over memory of the device that is there already, borrowed for the life of the buffer. */
void tr_staging_over(tr_device *device, int64_t floats, float *data, struct tr_staging *out);
/* Frees what the buffer owns. Nothing may be under way. Accepts zeros. */
void tr_staging_release(struct tr_staging *buffer);
/* Sees to a host side, so that the following may be used. TR_ENOMEM. */
tr_status tr_staging_open(struct tr_staging *buffer);
/* Whether both sides are one. */
static inline bool tr_staging_is_direct(const struct tr_staging *buffer)
{
    return buffer->host == buffer->data;
}
/* Bytes that the buffer owns, on the device and on the host. */
size_t tr_staging_memory(const struct tr_staging *buffer);
/* Those of them on the host beside a device with memory of its own. */
size_t tr_staging_host_memory(const struct tr_staging *buffer);

/* Enqueue copies of the floats [begin, end) from one side to the other. */
tr_status tr_staging_to_host(const struct tr_staging *buffer, int64_t begin, int64_t end);
/* See tr_device_to_host_beside(). */
tr_status tr_staging_to_host_beside(const struct tr_staging *buffer, int64_t begin, int64_t end);
tr_status tr_staging_to_device(const struct tr_staging *buffer, int64_t begin, int64_t end);

#endif
