/* The contents of a trainer's checkpoints: tensors, and figures with these names. */
#ifndef TR_TRAIN_TRAINER_TENSORS_H
#define TR_TRAIN_TRAINER_TENSORS_H

#include "job/tensors.h"
#include "train/loop/internal.h"

#define GIVEN_RATE "given_rate" /* where a program has set one */
/* Of a plateau schedule only. */
#define PLATEAU_FACTOR  "plateau_factor"
#define PLATEAU_WORSE   "plateau_worse"
#define PLATEAU_METRICS 3
/* The name of its best figure, by the figure that judges the run (NULL: the loss). */
void trainer_plateau_best(const char *monitor, char name[TRAINER_BEST_NAME]);

/* Where a tensor lies in the variables. */
struct trainer_origin {
    int arena;          /* TR_ARENAS + i: number i of the strategy's own */
    int64_t begin, end; /* floats */
};

/* Begins as zeros. */
struct trainer_tensors {
    struct tr_stored_tensor *tensor[TR_CHECKPOINT_GROUPS]; /* data in host memory */
    struct trainer_origin *origin[TR_CHECKPOINT_GROUPS];
    int64_t count[TR_CHECKPOINT_GROUPS];
    char (*name)[TR_STATE_NAME]; /* of the optimizer's: "m.conv1.weights" */
    int arenas;                  /* including the strategy's own, after the others */
    float **host;                /* [arenas]: whole; borrowed from the device where it shares memory */
    float **copy;                /* [arenas]: copies, owned */
};

/* Lists all tensors: to be saved, with the device's numbers; or, with `checkpoint`, to be loaded: then
   those of which this rank keeps nothing have no data. The same on all ranks, except for the data. Release
   also after a failure. TR_ENOMEM. */
tr_status trainer_tensors_list(tr_trainer *trainer, const tr_checkpoint *checkpoint,
                               struct trainer_tensors *out);
/* Copies numbers that were loaded on the host to the device. */
tr_status trainer_tensors_take(tr_trainer *trainer, struct trainer_tensors *tensors);
void trainer_tensors_release(struct trainer_tensors *tensors);

/* Contents of a checkpoint besides tensors. */
struct trainer_facts {
    struct tr_checkpoint_metric metric[TRAINER_BEST_METRICS + PLATEAU_METRICS + 1];
    char name[2][TRAINER_BEST_NAME], plateau_name[TRAINER_BEST_NAME]; /* of those that have a figure's */
    struct tr_checkpoint_file file;                                   /* of what data sets share */
};
/* The content of a checkpoint of the present state, without its resolved text, its receipt, digests and
   hash; all borrowed from the trainer, the tensors and *facts. */
void trainer_tensors_describe(const tr_trainer *trainer, const struct trainer_tensors *tensors,
                              struct trainer_facts *facts, struct tr_checkpoint_content *out);

#endif
