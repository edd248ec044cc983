/* How a run used its time: the results of tr_trainer_profile() of trireme/train.h. */
#ifndef TRIREME_PROFILE_H
#define TRIREME_PROFILE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The time of a run by activity, on all processes. Waiting for other processes is separate from
   communication, which is the rest of the time for moving data. */
enum tr_cause {
    TR_CAUSE_FORWARD,       /* outputs and losses */
    TR_CAUSE_BACKWARD,      /* gradients */
    TR_CAUSE_UPDATE,        /* of parameters */
    TR_CAUSE_COMMUNICATION, /* moving and adding data for other ranks */
    TR_CAUSE_WAITING,       /* for others */
    TR_CAUSE_INPUT,         /* reading and assembling batches */
    TR_CAUSE_EVALUATION,    /* on the way */
    TR_CAUSE_CHECKPOINT,    /* saving */
    TR_CAUSE_OTHER,         /* the rest */
    TR_CAUSES               /* how many there are */
};

/* The time of one layer. */
struct tr_profile_layer {
    const char *name;                               /* of the layer */
    int64_t calls;                                  /* of forward, on all processes */
    double forward_seconds, backward_seconds;       /* summed over processes */
    double forward_operations, backward_operations; /* float operations; a fused multiply-add is two */
    int64_t parameters;                             /* numbers */
    int64_t bytes;                                  /* of the output of one pass */
};

/* The time of one process. */
struct tr_profile_rank {
    double seconds[TR_CAUSES]; /* of the main thread */
    double awaited;            /* seconds that the others waited for this process */
};

/* The times of a run. */
struct tr_train_profile {
    double peak; /* float operations per second that one process can reach, as measured; 0: unknown */
    int layer_count, ranks;          /* of `layers` and of `rank` */
    struct tr_profile_layer *layers; /* [layer_count] layers that computed */
    struct tr_profile_rank *rank;    /* [ranks] */
};

#ifdef __cplusplus
}
#endif
#endif
