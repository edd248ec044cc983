/* The `ref` device: what every operation of device/ops.h computes, spelled out as plain loops.
 *
 * It is the definition of every bit; other devices are compared with it. It favours being read over being
 * fast, but stays fast enough that whole training runs can be checked with it.
 *
 * Invariant: a ref_<operation> function uses nothing of its device, since other host devices take it for
 * operations that they lack. Memory that it works in is allocated and freed inside the call.
 */
#ifndef TR_DEVICE_REF_REF_H
#define TR_DEVICE_REF_REF_H

#include "device/device.h"

extern const struct tr_device_class tr_device_ref;

/* Host memory, one thread. */
extern const struct tr_device_kind tr_device_kind_ref;

/* One function per operation: computes it at once, on the calling thread. `device` is not used. TR_ENOMEM
   when working memory is lacking, else TR_OK. Arguments that break the contract of device/ops.h are bugs. */
#define REF_OPERATION(op) tr_status ref_##op(tr_device *device, const struct tr_op_##op *arguments);
TR_DEVICE_OPS(REF_OPERATION)
#undef REF_OPERATION

#endif
