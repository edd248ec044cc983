/* Outgoing: host memory in which data for a device are assembled, in two halves: the device reads one
 * while the other is filled.
 */
#ifndef TR_JOB_OUTGOING_H
#define TR_JOB_OUTGOING_H

#include "device/device.h"

/* Begins as zeros. */
struct tr_outgoing {
    void *memory[2];
    tr_event sent[2];
    bool used[2];
    int turn;
};

/* Allocates twice `bytes`; release with tr_outgoing_release(), also after a failure. TR_ENOMEM. */
tr_status tr_outgoing_make(tr_device *device, size_t bytes, struct tr_outgoing *outgoing);
/* Accepts zeros. */
void tr_outgoing_release(tr_device *device, struct tr_outgoing *outgoing);
/* Memory to fill: the device has finished reading its earlier contents. */
tr_status tr_outgoing_take(tr_device *device, struct tr_outgoing *outgoing, void **out);
/* Enqueues a copy of the memory last taken to `to`, device memory. */
tr_status tr_outgoing_send(tr_device *device, struct tr_outgoing *outgoing, void *to, size_t bytes);

#endif
