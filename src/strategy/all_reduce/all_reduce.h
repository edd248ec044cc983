/* The parts of all-reduce (described in all_reduce.c): buckets, factors, and the strategy around them. */
#ifndef TR_STRATEGY_ALL_REDUCE_H
#define TR_STRATEGY_ALL_REDUCE_H

#include "strategy/class.h"

struct all_reduce;

/* A layer whose weights' gradient is computed from all ranks' factors, x and dy. */
struct factor {
    int layer;
    int64_t in, out;
    int64_t begin, end; /* floats of the arena: its weights */
    int64_t grain;      /* inputs whose weights fill whole cache lines */
    int64_t before;     /* floats of earlier factors in a host's copy */
};

/* A range of the arenas that is reduced, updated and gathered at a time. */
struct bucket {
    struct all_reduce *owner;
    const struct factor *factor; /* the factor of its weights; NULL: nodes are added */
    int64_t begin, end;          /* floats of an arena */
    int64_t *shard;    /* [size + 1] floats from `begin` on: rank r updates from shard[r] to shard[r + 1] */
    tr_ticket *ticket; /* of the operation under way, or NULL */
    bool travels;      /* with a factor: rows come from other hosts, and nothing is summed */
    tr_ticket *rows;   /* rows under way, or NULL */
    tr_event copied;   /* this rank's nodes are in host memory; for the first bucket also the loss */
    tr_event updated;  /* this rank's shard is updated, and in host memory */
};

enum factors { FACTORS_AUTO, FACTORS_NEVER, FACTORS_ALWAYS };

struct all_reduce_options {
    double bucket; /* MiB */
    enum factors factors;
};

/* Layers whose gradients are computed from factors, and their memory. */
struct factors_memory {
    struct factor *factor;
    int count;
    bool *apart;       /* [layers]: whether each is one of them */
    bool *able;        /* [size]: which layers each rank supports */
    tr_window *window; /* for a host's first rank: for each factor, from each rank: x [rows][in], dy
                          [rows][out] */
    int64_t *before;   /* [size + 1] rows to make room for before those of each rank */
    int64_t *bytes;    /* [size + 1], for one call */
    int64_t *row;      /* [microbatches + 1] bounds in the batch of the step */
    float *x, *dy;     /* rows of all ranks: of some inputs, and of all outputs */
    size_t memory;     /* bytes of these and of the window's own part, included in the strategy's */
};

/* Layers of a single process whose weights' gradients are computed and applied piece by piece. */
struct pieces {
    bool *apart;     /* [layers]: whether each is one of them; NULL: none */
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
    int buckets; /* in the order in which backward completes them: from the end of the arenas to the
                    beginning */
    struct tr_range *updates; /* [buckets]: this rank's shard of each, for the driver */
    int64_t *shard_bytes;     /* [size + 1], for one call */
    /* With a communicator: */
    tr_window *parameters, *nodes;    /* NULL: ranks do not share memory */
    tr_window *previous;              /* undo records, if the state outlives ranks; else NULL */
    struct all_reduce_copies *copies; /* copies of state on other ranks, if it outlives ranks that way;
                                         else NULL */
    int64_t step;                     /* under way, or completed last */
    tr_reduction *reduction;
    struct factors_memory factors;
    float *whole;                   /* the whole gradient, where its norm is needed; else NULL */
    float *sum;                     /* a server's shard of the gradient; else NULL */
    const struct tr_staging *slots; /* this rank's nodes; NULL: a server has none */
    const struct tr_staging *values;
    struct tr_staging gradient; /* of the holder: an arena that is valid in this rank's shards as they
                                   complete, or entirely; its host side is `whole`, `sum` or that of node 0 */
    /* Of the current step: */
    int copied, started, updated, given; /* buckets: number of first buckets that have reached each stage */
    tr_ticket *loss;                     /* of `sums`, or NULL */
    float *sums;                         /* of loss and of correctness over all ranks */
    double seconds;                      /* spent on buckets during computation of the gradient */
};

/* ---- factors.c ---- */

/* Chooses the layers; before buckets are made. */
tr_status all_reduce_choose_factors(struct all_reduce *self);
/* Makes the memory, once there are nodes. Where ranks do not share memory, no layers remain. Collective. */
tr_status all_reduce_make_factors(struct all_reduce *self);
/* Releases the memory, to be made again for other microbatches; the layers stay. */
void all_reduce_unmake_factors(struct all_reduce *self);
void all_reduce_release_factors(struct all_reduce *self);
/* The factor of a layer's weights, or NULL. */
const struct factor *all_reduce_factor_of(const struct all_reduce *self, int layer);
/* Makes the gradient leave these layers out, and keep their rows instead. */
void all_reduce_take_factors(struct all_reduce *self);
/* Weights that are computed and updated at a time. */
int64_t all_reduce_factor_piece(const struct all_reduce *self, const struct factor *factor);
/* Starts to bring the other hosts' rows for a bucket's factor; as with tr_comm_reduce_start(), this rank
   no longer reads the weights. */
tr_status all_reduce_show_factors(struct bucket *bucket);
/* The gradient of a bucket with a factor, from all ranks' rows: its floats [begin, end), in this rank's
   shard. */
tr_status all_reduce_form(const struct bucket *bucket, int64_t begin, int64_t end, float *out);

/* ---- pieces.c: without a communicator ---- */

/* Chooses the layers and makes the memory; call it before the gradient is made, which must know the
   layers. */
tr_status all_reduce_choose_pieces(struct all_reduce *self);
/* Makes the gradient leave these layers out. */
void all_reduce_take_pieces(struct all_reduce *self);
void all_reduce_release_pieces(struct all_reduce *self);
/* A step with them: everything is updated during backward, unless the loss is bad. */
tr_status all_reduce_compute_in_pieces(struct all_reduce *self, int64_t step, struct tr_combined *out);
/* The slot `spares` of strategy/class.h. */
int64_t all_reduce_spares(const struct tr_job *job, const void *options);

/* ---- cut.c ---- */

/* Divides the arenas into buckets and these into shards. */
tr_status all_reduce_make_buckets(struct all_reduce *self);
void all_reduce_release_buckets(struct all_reduce *self);

/* ---- buckets.c ---- */

/* Begins a step: no operation is under way. */
void all_reduce_begin(struct all_reduce *self);
/* The nodes of this rank are final from float `from` of their arenas on, and these parameters are no
   longer read: starts all operations that can start, and makes progress. The loss comes first. */
tr_status all_reduce_advance(struct all_reduce *self, int64_t from);
/* The same at the end of backward, all of which is enqueued: waits for the nodes of one bucket after
   another. */
tr_status all_reduce_follow(struct all_reduce *self);
/* Waits for all buckets. Where no norm is needed, afterwards the shards are updated and gathered
   everywhere, unless the loss is bad, and the result of the update has been requested; else `gradient` is
   the whole gradient. Copies to the holder are enqueued. */
tr_status all_reduce_finish(struct all_reduce *self);
/* Gathers the shards of an arena, within `window` or, with NULL, everywhere. */
tr_status all_reduce_join(struct all_reduce *self, const struct tr_staging *arena, tr_window *window,
                          const char *name);

/* ---- previous.c: state that outlives ranks ---- */

/* Whether it shall. */
static inline bool all_reduce_outlives(const struct all_reduce *self)
{
    return self->head.settings.outlives && self->head.comm;
}
/* Makes room for undo records, once the buckets are known, where all ranks share memory. Collective.
   TR_EUNSUPPORTED where they cannot share that much. */
tr_status all_reduce_make_previous(struct all_reduce *self);
/* Starts keeping undo records. */
void all_reduce_keep_previous(struct all_reduce *self);
tr_status all_reduce_inherit(tr_strategy *strategy, tr_strategy *from, int64_t step);

/* ---- copies.c: the same where ranks do not share memory ---- */

struct all_reduce_copies;
/* Makes room for copies, once the buckets are known. TR_EUNSUPPORTED where the settings do not want any. */
tr_status all_reduce_make_copies(struct all_reduce *self);
void all_reduce_release_copies(struct all_reduce *self);
/* Copies the state after `step` steps. Collective. Does nothing without copies. */
tr_status all_reduce_take_copies(tr_strategy *strategy, int64_t step);
/* tr_strategy_inherit() from one with copies. */
tr_status all_reduce_inherit_copies(struct all_reduce *self, const struct all_reduce *other, int64_t step);

/* ---- all_reduce.c: for classes that divide the work in this way, with `options` and head.servers set;
   the slots of strategy/class.h ---- */

tr_status all_reduce_create(tr_strategy *strategy);
tr_status all_reduce_start(tr_strategy *strategy);
tr_status all_reduce_rebalance(tr_strategy *strategy);
void all_reduce_destroy(tr_strategy *strategy);
tr_status all_reduce_gradient(tr_strategy *strategy, int64_t step, struct tr_combined *out);
extern const struct tr_strategy_division all_reduce_division;

#endif
