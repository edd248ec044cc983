/* The numbers of the frozen base that adapters stand beside: read, never written, by all passes of a process.
 *
 * The host's side is memory of the caller's, mostly a mapped file, of which the processes of a host share one
 * copy. A device that reads host memory computes with it as it is; any other one gets a copy, once, which its
 * passes share.
 */
#ifndef TR_NN_BASE_NUMBERS_H
#define TR_NN_BASE_NUMBERS_H

#include "device/device.h"
#include "nn/model.h"

/* Of `model`, whose base parameter number i is at host[i]. The array is copied; what it points to is borrowed
   until the model is destroyed, after which `release` (or NULL) is called with `user`, also after a failure.
   model->base_hash becomes that of the base, as tr_model_hash() forms it. Errors: TR_ENOMEM, TR_ENONFINITE.
 */
tr_status tr_model_take_base(struct tr_model *model, const float *const *host, void (*release)(void *user),
                             void *user);
/* Adds a parameter to the hash of a base, in their order. TR_ENONFINITE. */
tr_status tr_base_hash_add(tr_sha256 *hash, const struct tr_parameter *parameter, const float *values);
/* Where the base parameters are for the operations of a device: *out is an array as long as the base, valid
   until tr_base_numbers_leave(). TR_EINVAL where the numbers are not there. Any thread. */
tr_status tr_base_numbers_enter(const struct tr_model *model, tr_device *device, const float *const **out);
/* Ends one use of it. */
void tr_base_numbers_leave(const struct tr_model *model, tr_device *device);
/* On the host. */
const float *const *tr_base_numbers_host(const struct tr_model *model);

#endif
