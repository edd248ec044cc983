/* The numbers of the adapters' frozen base: all passes of a process read them, and none writes them.
 *
 * The host's side is the caller's memory, usually a mapped file, so that the processes of a host share one
 * copy. A device that reads host memory uses it in place; any other device gets one copy, which its passes
 * share.
 */
#ifndef TR_NN_BASE_NUMBERS_H
#define TR_NN_BASE_NUMBERS_H

#include "device/device.h"
#include "nn/model.h"

/* Gives `model` its base: parameter number i is at host[i]. The array is copied; the numbers are borrowed
   until the model is destroyed, after which `release` (or NULL) is called with `user`, also after a
   failure. model->base_hash becomes that of the base, as tr_model_hash() forms it. Errors: TR_ENOMEM,
   TR_ENONFINITE. */
tr_status tr_model_take_base(struct tr_model *model, const float *const *host, void (*release)(void *user),
                             void *user);
/* Adds a parameter to the hash of a base, in their order. TR_ENONFINITE. */
tr_status tr_base_hash_add(tr_sha256 *hash, const struct tr_parameter *parameter, const float *values);
/* Where the base parameters are for the operations of a device: *out is an array as long as the base,
   valid until tr_base_numbers_leave(). TR_EINVAL where the model has not been given them. Any thread. */
tr_status tr_base_numbers_enter(const struct tr_model *model, tr_device *device, const float *const **out);
/* Ends a use of the array. */
void tr_base_numbers_leave(const struct tr_model *model, tr_device *device);
/* The base parameters on the host. */
const float *const *tr_base_numbers_host(const struct tr_model *model);

#endif
