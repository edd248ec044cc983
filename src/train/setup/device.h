/* The device that a rank computes with. */
#ifndef TR_TRAIN_DEVICE_H
#define TR_TRAIN_DEVICE_H

#include "comm/comm.h"
#include "device/device.h"
#include "trireme/train.h"

/* Opens the device that `names` means for this rank: one name, or several with commas between them, of
   which rank r takes number r, from the beginning again where there are more ranks. A name without a
   number, of a kind with several devices, distributes them in turn among the ranks of a host. `comm` may
   be NULL. */
tr_status tr_train_open_device(const char *names, const struct tr_train_settings *settings,
                               const tr_comm *comm, int threads, tr_device **out);
/* Whether `names` means for this rank the device `opened` (with a name of tr_train_open_device()), not
 * another. */
bool tr_train_is_device(const char *names, const tr_comm *comm, const tr_device *opened);

#endif
