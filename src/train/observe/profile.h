/* The use of a run's time: the sums of a timeline, of all ranks, by layer and by cause.
 *
 * A trainer whose settings request a trace or a profile makes a timeline; see base/threads/timeline.h.
 */
#ifndef TR_TRAIN_PROFILE_H
#define TR_TRAIN_PROFILE_H

#include "base/threads/timeline.h"
#include "comm/comm.h"
#include "device/device.h"
#include "nn/model.h"
#include "trireme/train.h"

/* The lane of the thread that runs a trainer. */
#define TR_PROFILE_LANE "main"

/* Sums this rank's timeline, which must be frozen, and gathers the sums of all ranks, on all. Collective
   when `comm` is not NULL. Measures the device's peak, which takes 0.1 s. Names are borrowed from the
   model. Returned, release with tr_profile_release(). */
tr_status tr_profile_make(tr_timeline *timeline, const struct tr_model *model, tr_device *device,
                          tr_comm *comm, struct tr_train_profile *out);
void tr_profile_release(struct tr_train_profile *profile);

#endif
