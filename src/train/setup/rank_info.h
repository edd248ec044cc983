/* The ranks' facts about themselves, exchanged so that each can describe all. */
#ifndef TR_TRAIN_RANK_INFO_H
#define TR_TRAIN_RANK_INFO_H

#include "comm/comm.h"
#include "device/device.h"

struct trainer_rank_info {
    char host[64], device[96], holder[96];
    int64_t threads, memory;
};

/* Gathers the facts of all ranks: [size], or one without a communicator. `holder` is the device that holds
   and updates the parameters. Collective. *out is returned, free with tr_free(). */
tr_status tr_train_gather_rank_info(tr_comm *comm, const tr_device *device, const tr_device *holder,
                                    size_t memory, struct trainer_rank_info **out);

#endif
