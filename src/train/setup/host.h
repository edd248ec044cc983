/* The host of a trainer: the memory it takes there, and the ranks' facts about each other. */
#ifndef TR_TRAIN_HOST_H
#define TR_TRAIN_HOST_H

#include "train/parts/variables.h"
#include "train/setup/memory.h"
#include "train/setup/rank_info.h"
#include "trireme/train.h"

/* Zeroed to begin with. */
struct trainer_host {
    struct tr_memory_room room;          /* free memory before this trainer took any */
    bool check;                          /* refuses a run that takes more */
    struct tr_train_memory memory;       /* what the processes of this host take */
    struct trainer_rank_info *rank_info; /* [ranks] */
};

/* Before the trainer takes anything. Local. */
void trainer_host_look(struct trainer_host *host, const struct tr_train_settings *settings);
/* Before anything large is made: the least memory that the processes of the host will take. TR_ENOMEM
   where it has less and the settings do not ignore that. Collective; `comm` may be NULL. */
tr_status trainer_host_expect(struct trainer_host *host, const struct tr_job *job, tr_comm *comm,
                              const struct trainer_variables *variables);
/* Before the first step, which touches all of it: the memory that they take. Likewise. */
tr_status trainer_host_count(struct trainer_host *host, const struct tr_job *job, tr_comm *comm,
                             const struct trainer_variables *variables);
/* Gathers the facts of all ranks of `comm` anew. Collective. */
tr_status trainer_host_gather_rank_info(struct trainer_host *host, tr_comm *comm,
                                        const struct trainer_variables *variables);
void trainer_host_release(struct trainer_host *host);

/* Whether a file of data has changed since it was opened; `text` of `size` bytes names it. Ranks of one host
   see the same files: the first looks, the others get false. Local. */
bool trainer_data_changed(const struct tr_job *job, const tr_comm *comm, char *text, size_t size);

#endif
