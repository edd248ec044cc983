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
    int64_t before;     /* floats of the factors before it in a host's copy */
};

/* A range of the arenas that is added, updated and handed around at a time. */
struct bucket {
    struct all_reduce *owner;
    const struct factor *factor; /* whose weights it is; NULL: nodes are added */
    int64_t begin, end;          /* floats of an arena */
    int64_t *shard;    /* [size + 1] floats from `begin` on: rank r updates from shard[r] to shard[r + 1] */
    tr_ticket *ticket; /* of what is under way, or NULL */
    bool travels;      /* with a factor: its rows come from other hosts, and nothing is summed */
    tr_ticket *rows;   /* of these on their way, or NULL */
    tr_event copied;   /* this rank's nodes are in host memory; with the first bucket's the loss */
    tr_event updated;  /* this rank's shard is updated, and in host memory */
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
    bool *apart; /* [layers]: is one of them */
    bool *able;  /* [size]: what each rank can */
    tr_window
        *window;     /* of a host's first rank: for each factor, of each rank: x [rows][in], dy [rows][out] */
    int64_t *before; /* [size + 1] rows for which there is room before those of each rank */
    int64_t *bytes;  /* [size + 1], for one call */
    int64_t *row;    /* [microbatches + 1] bounds in the batch of the step */
    float *x, *dy;   /* rows of all ranks: of some inputs, and of all outputs */
    size_t memory;   /* bytes of these and of the window's own part, counted in the strategy's */
};

/* Layers of a process alone whose weights' gradients are formed and applied piece by piece. */
struct pieces {
    bool *apart;     /* [layers]: is one of them; NULL: there are none */
    float *x;        /* some columns of a step's rows */
    float *gradient; /* a piece */
};

struct all_reduce {
    struct tr_strategy head;
    struct all_reduce_options options;
    struct pieces pieces;
    struct tr_gradient_part part;
    const int64_t *microbatch; /* [size + 1] bounds: those of head.shares */
    struct bucket *bucket;
    int buckets; /* in the order in which backward completes them: from the end of the arenas to 0 */
    struct tr_range *updates; /* [buckets]: this rank's shard of each, for the driver */
    int64_t *shard_bytes;     /* [size + 1], for one call */
    /* With a communicator: */
    tr_window *parameters, *nodes;    /* NULL: ranks do not share memory */
    tr_window *previous;              /* what was before updates, if the state outlives ranks; else NULL */
    struct all_reduce_copies *copies; /* of state with other ranks, if it outlives them so; else NULL */
    int64_t step;                     /* under way, or done last */
    tr_reduction *reduction;
    struct factors_memory factors;
    float *whole;                   /* the whole gradient, where its norm is wanted; else NULL */
    float *sum;                     /* a server's shard of the gradient; else NULL */
    const struct tr_staging *slots; /* this rank's nodes; NULL: a server has none */
    const struct tr_staging *values;
    struct tr_staging gradient; /* of the holder: an arena that is right in this rank's shards as they come,
                                   or in whole; its host side is `whole`, `sum` or that of node 0 */
    /* Of the step under way: */
    int copied, started, updated, given; /* buckets: how far the way each of the first ones has come */
    tr_ticket *loss;                     /* of `sums`, or NULL */
    float *sums;                         /* of loss and of correctness over all ranks */
    double seconds;                      /* spent on buckets while the gradient was computed */
};

/* ---- factors.c ---- */

/* Chooses the layers; before buckets are made. */
tr_status all_reduce_choose_factors(struct all_reduce *self);
/* Makes the memory, once there are nodes. Where ranks do not share theirs, no layer is left. Collective. */
tr_status all_reduce_make_factors(struct all_reduce *self);
/* Releases it, to be made anew for other microbatches; the layers stay. */
void all_reduce_unmake_factors(struct all_reduce *self);
void all_reduce_release_factors(struct all_reduce *self);
/* The factor that a layer's weights have, or NULL. */
const struct factor *all_reduce_factor_of(const struct all_reduce *self, int layer);
/* Has the gradient leave them out, and keep their rows instead. */
void all_reduce_take_factors(struct all_reduce *self);
/* Weights that are formed and updated at a time. */
int64_t all_reduce_factor_piece(const struct all_reduce *self, const struct factor *factor);
/* Starts to bring what other hosts show of a bucket's factor; as with tr_comm_reduce_start(), this rank does
   not read the weights any more. */
tr_status all_reduce_show_factors(struct bucket *bucket);
/* The gradient of a bucket with a factor, from what all ranks have shown: its floats [begin, end), in this
   rank's shard. */
tr_status all_reduce_form(const struct bucket *bucket, int64_t begin, int64_t end, float *out);

/* ---- pieces.c: without a communicator ---- */

/* Chooses the layers and makes the memory; before the gradient is made, whose part learns of them. */
tr_status all_reduce_choose_pieces(struct all_reduce *self);
/* Has the gradient leave them out. */
void all_reduce_take_pieces(struct all_reduce *self);
void all_reduce_release_pieces(struct all_reduce *self);
/* A step of them: all is updated on the way, unless the loss is bad. */
tr_status all_reduce_compute_in_pieces(struct all_reduce *self, int64_t step, struct tr_combined *out);
/* The slot `spares` of strategy/class.h. */
int64_t all_reduce_spares(const struct tr_job *job, const void *options);

/* ---- cut.c ---- */

/* Divides the arenas into buckets and these into shards. */
tr_status all_reduce_make_buckets(struct all_reduce *self);
void all_reduce_release_buckets(struct all_reduce *self);

/* ---- buckets.c ---- */

/* Begins a step: nothing is under way. */
void all_reduce_begin(struct all_reduce *self);
/* Of the nodes of this rank, all is there from float `from` of their arenas on, and these parameters are no
   longer read: starts what can be started and moves on what is under way. The loss comes first. */
tr_status all_reduce_advance(struct all_reduce *self, int64_t from);
/* The same to the end of backward, which is all enqueued: waits for the nodes of one bucket after another. */
tr_status all_reduce_follow(struct all_reduce *self);
/* Waits for all buckets. Where no norm is wanted, the shards are updated and have come to all, unless the
   loss is bad, and the driver has been asked how that went; else `gradient` is the whole gradient. What comes
   to the holder from others is enqueued. */
tr_status all_reduce_finish(struct all_reduce *self);
/* Brings the shards of an arena together, within `window` or, with NULL, everywhere. */
tr_status all_reduce_join(struct all_reduce *self, const struct tr_staging *arena, tr_window *window,
                          const char *name);

/* ---- previous.c: state that outlives ranks ---- */

/* Whether it shall. */
static inline bool all_reduce_outlives(const struct all_reduce *self)
{
    return self->head.settings.outlives && self->head.comm;
}
/* Makes room for what was before, once the buckets are known, where all ranks share memory. Collective.
   TR_EUNSUPPORTED where they cannot share that much. */
tr_status all_reduce_make_previous(struct all_reduce *self);
/* From now on it is kept. */
void all_reduce_keep_previous(struct all_reduce *self);
tr_status all_reduce_inherit(tr_strategy *strategy, tr_strategy *from, int64_t step);

/* ---- copies.c: the same where ranks do not share memory ---- */

struct all_reduce_copies;
/* Makes room for copies, once the buckets are known. TR_EUNSUPPORTED where the settings want none. */
tr_status all_reduce_make_copies(struct all_reduce *self);
void all_reduce_release_copies(struct all_reduce *self);
/* Copies what there is when `step` steps are done. Collective. Nothing happens without copies. */
tr_status all_reduce_take_copies(tr_strategy *strategy, int64_t step);
/* tr_strategy_inherit() from one with copies. */
tr_status all_reduce_inherit_copies(struct all_reduce *self, const struct all_reduce *other, int64_t step);

/* ---- all_reduce.c: for classes that divide the work so, with `options` and head.servers set; the slots of
   strategy/class.h ---- */

tr_status all_reduce_create(tr_strategy *strategy);
tr_status all_reduce_start(tr_strategy *strategy);
tr_status all_reduce_rebalance(tr_strategy *strategy);
void all_reduce_destroy(tr_strategy *strategy);
tr_status all_reduce_gradient(tr_strategy *strategy, int64_t step, struct tr_combined *out);
extern const struct tr_strategy_division all_reduce_division;

#endif
