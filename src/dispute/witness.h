/* The witness: a device that lets another one compute, and keeps evidence of the work when requested. It
 * lacks fusions, so that all numbers between operations exist; and the host cannot access its memory
 * directly, so that all transfers are seen.
 */
#ifndef TR_DISPUTE_WITNESS_H
#define TR_DISPUTE_WITNESS_H

#include "device/device.h"
#include "dispute/evidence.h"

/* Takes `inner`, also after a failure. Returned, destroy with tr_device_destroy(). TR_ENOMEM. */
tr_status tr_witness_create(tr_device *inner, tr_device **out);
/* The device that computes. */
tr_device *tr_witness_inner(tr_device *device);
/* Records later work in the evidence; NULL: stops. Borrowed. */
void tr_witness_watch(tr_device *device, struct tr_evidence *evidence);
/* Keeps the contents of all its memory in `evidence`. */
tr_status tr_witness_keep(tr_device *device, struct tr_evidence *evidence);

#endif
