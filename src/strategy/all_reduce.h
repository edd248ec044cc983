/* The parts of all-reduce (all_reduce.c says what it does): buckets, factors, and the strategy around them.
 */
#ifndef TR_STRATEGY_ALL_REDUCE_H
#define TR_STRATEGY_ALL_REDUCE_H

#include "strategy/class.h"

struct all_reduce;

/* A layer whose weights' gradient is formed from what all ranks have of its factors, x and dy. */
struct factor {
    int layer;
    int64_t in, out;
    int64_t begin, end; /* floats of the arena: its weights */
    int64_t grain;      /* inputs whose weights fill whole cache lines */
    int64_t before;     /* floats of a row of the factors before it in the window */
};

/* A range of the arenas that is added, updated and handed around at a time. */
struct bucket {
    struct all_reduce *owner;
    const struct factor *factor; /* whose weights it is; NULL: nodes are added */
    int64_t begin, end;          /* floats of an arena */
    int64_t *share;    /* [size + 1] floats from `begin` on: rank r updates from share[r] to share[r + 1] */
    tr_ticket *ticket; /* of what is under way, or NULL */
};

enum factors { FACTORS_AUTO, FACTORS_NEVER, FACTORS_ALWAYS };

struct all_reduce_options {
    double bucket; /* MiB */
    enum factors factors;
};

/* Layers that are formed from factors, and the memory for that. */
struct factors_memory {
    struct factor *factor;
    int count;
    bool *apart;       /* [layers]: is one of them */
    bool *able;        /* [size]: what each rank can */
    tr_window *window; /* of each rank, for each factor: x [rows][in], dy [rows][out] */
    int64_t *row;      /* [microbatches + 1] bounds in the batch of the step */
    float *x, *dy;     /* rows of all ranks: of some inputs, and of all outputs */
    size_t scratch;    /* bytes of these two */
};

struct all_reduce {
    struct tr_strategy head;
    struct tr_gradient_part part;
    int64_t *microbatch; /* [size + 1] bounds */
    struct bucket *bucket;
    int buckets;          /* in the order in which backward completes them: from the end of the arenas to 0 */
    int64_t *share_bytes; /* [size + 1], for one call */
    /* With a communicator: */
    tr_window *parameters, *nodes; /* NULL: ranks do not share memory */
    tr_reduction *reduction;
    struct factors_memory factors;
    float *whole; /* the whole gradient, where its norm is wanted; else NULL */
    float *sum;   /* a server's share of the gradient; else NULL */
    /* Of the step under way: */
    float *gradient;   /* an arena that is right in this rank's shares as they come, or in whole */
    int started;       /* buckets */
    tr_ticket *loss;   /* of `sums`, or NULL */
    float *sums;       /* of loss and of correctness over all ranks */
    bool open, spoilt; /* the loss is known; it is not finite, and nothing is applied */
    double seconds;    /* spent on buckets while the gradient was computed */
};

/* ---- all_reduce_factors.c ---- */

/* Chooses the layers; before buckets are made. */
tr_status all_reduce_choose_factors(struct all_reduce *self);
/* Makes the memory, once there are nodes. Where ranks do not share theirs, no layer is left. Collective. */
tr_status all_reduce_make_factors(struct all_reduce *self);
void all_reduce_release_factors(struct all_reduce *self);
/* Bytes of device memory that this rank has for them. */
size_t all_reduce_factors_memory(const struct all_reduce *self);
/* The factor that a layer's weights have, or NULL. */
const struct factor *all_reduce_factor_of(const struct all_reduce *self, int layer);
/* Has the gradient leave them out, and keep their rows instead. */
void all_reduce_take_factors(struct all_reduce *self);
/* Weights that are formed and updated at a time. */
int64_t all_reduce_factor_piece(const struct all_reduce *self, const struct factor *factor);
/* struct tr_comm_apply's `form` for a struct bucket with a factor. */
tr_status all_reduce_form(void *bucket, int64_t begin, int64_t end, float *out);

/* ---- all_reduce_buckets.c ---- */

/* Divides the arenas into buckets and these into shares. */
tr_status all_reduce_make_buckets(struct all_reduce *self);
void all_reduce_release_buckets(struct all_reduce *self);

/* Begins a step: nothing is under way. */
void all_reduce_begin(struct all_reduce *self);
/* Of the nodes of this rank, all is there from float `from` of their arenas on, and these parameters are no
   longer read: starts what can be started and moves on what is under way. The loss comes first. */
tr_status all_reduce_advance(struct all_reduce *self, int64_t from);
/* Waits for all buckets. Where no norm is wanted, the shares are updated and have come to all, unless
   `spoilt` is set; else `gradient` is the whole gradient. `sums` are those of all ranks. */
tr_status all_reduce_finish(struct all_reduce *self);
/* Updates this rank's shares by the whole gradient and brings them together. */
tr_status all_reduce_apply(struct all_reduce *self);
/* Brings the shares of an arena together, within `window` or, with NULL, everywhere. */
tr_status all_reduce_gather(struct all_reduce *self, float *arena, tr_window *window, const char *name);

#endif
