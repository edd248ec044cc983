/* The `ref` device: every operation of device/ops.h as plain loops.
 *
 * It defines every bit; other devices are compared with it. It is written to be read rather than to be
 * fast, but is fast enough to check whole training runs.
 *
 * Invariant: a ref_<operation> function uses nothing of its device, since other host devices call it for
 * operations that they lack. It allocates and frees its working memory.
 */
#ifndef TR_DEVICE_REF_REF_H
#define TR_DEVICE_REF_REF_H

#include "device/device.h"

extern const struct tr_device_class tr_device_ref;

/* Host memory, one thread. */
extern const struct tr_device_kind tr_device_kind_ref;

/* One function per operation: computes it immediately, on the calling thread. `device` is not used.
   TR_ENOMEM when working memory is lacking, else TR_OK. Arguments that break the contract of device/ops.h
   are bugs. */
#define REF_OPERATION(op) tr_status ref_##op(tr_device *device, const struct tr_op_##op *arguments);
TR_DEVICE_OPS(REF_OPERATION)
#undef REF_OPERATION

#endif
