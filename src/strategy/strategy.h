/* Strategies: how ranks share the work of a job and arrive at the same parameters.
 *
 * A strategy owns the variables and gradients of its rank. The model file chooses one (`strategy:`), and its
 * class (strategy/class.h) does the work; with no communicator it is all-reduce over a single process.
 *
 * Synchronous strategies: all ranks step together, and all functions but destroy are collective: every rank
 * calls them in the same order with arguments that agree.
 *
 * Asynchronous strategies: the ranks do not wait for each other. The root steps, gathers and saves; every
 * other rank calls tr_strategy_run_worker() once, which returns when the root ends the run. Creation, begin
 * and meet are collective all the same.
 */
#ifndef TR_STRATEGY_STRATEGY_H
#define TR_STRATEGY_STRATEGY_H

#include "comm/comm.h"
#include "job/step/gradient.h"
#include "job/job.h"
#include "job/step/variables.h"
#include "strategy/updates/log.h"

#include <stdatomic.h>

/* The figures of a step, the same on all ranks. */
struct tr_step_figures {
    int64_t steps;    /* steps that the run advanced: 1, or the work of all ranks meanwhile; if one was bad
                         (bad_loss, poisoned), it was the last of them */
    int64_t examples; /* of these steps' batches */
    float loss;       /* sum over the examples */
    float correct;    /* number of examples, classification only */
    float norm;       /* norm of the gradient, where measured, mean over the steps; else NaN */
    bool skipped;     /* the step, or one of them, was skipped, since it was not finite */
    bool bad_loss;    /* the loss is not finite, and no update was applied */
    bool poisoned;    /* a parameter is not finite after the step */
    int32_t request;  /* the bitwise or of all ranks' requests */
    bool rebalanced;  /* from the next step on, ranks compute other microbatches, see tr_strategy_shares() */
};

/* How a rank takes part. */
struct tr_placement {
    const char *role;                         /* "worker", "server", "stage" */
    int64_t first_microbatch, end_microbatch; /* that it computes in each step */
    int first_layer, end_layer;               /* that it computes */
    int64_t first_update, end_update; /* floats of the parameter arena that it updates; -1: scattered */
    int64_t updates;                  /* number of floats that it updates */
    bool confined;                    /* it keeps only parameters of its own layers */
    int64_t parameters; /* numbers of the network that it keeps; tr_strategy_placement() counts them */
};

/* The figures of a rank so far, in steps; without saving and evaluating. */
struct tr_rank_statistics {
    int64_t bytes_sent, bytes_received, bytes_shared; /* see struct tr_comm_statistics */
    double wait_seconds;                              /* waiting for others */
    double compute_seconds;                           /* of gradients */
    int64_t contributions;                            /* gradients that were applied, if asynchronous */
};

#define TR_STALENESS_BINS 64
struct tr_strategy_statistics {
    int ranks;
    struct tr_rank_statistics *rank;      /* [ranks]; owned, tr_strategy_statistics_release() */
    bool asynchronous;                    /* the members below are valid */
    int64_t staleness[TR_STALENESS_BINS]; /* histogram of gradients by missed updates; the last bin counts
                                             all above */
    int64_t dropped;                      /* gradients that were too late */
};

typedef struct tr_strategy tr_strategy;

#define TR_STRATEGY_RANKS 4096

/* Artificial stragglers, to study their effect; they change no bits of synchronous strategies. */
struct tr_strategy_settings {
    tr_device *holder; /* that holds and updates the variables, borrowed for the life of the strategy;
                          NULL: the one that computes */
    double slow;       /* slows this rank's computation by this factor; <= 1: not */
    const struct tr_update_log
        *log;            /* log of an asynchronous run, checked: the strategy replays it, whatever the job
                            says; borrowed for the life of the strategy. NULL: the job's strategy */
    uint64_t delay_seed; /* seed of random delays of all ranks, about half a step each; 0: none */
    bool outlives;       /* the state in memory must outlive the death of ranks, see tr_strategy_inherit() */
    int replicas_of_state;  /* then, where ranks share no memory: number of other ranks with a copy of each
                               rank's moments; 0 or 1 */
    const char *shares;     /* how microbatches are divided among the workers: "equal", "auto" (by measured
                               speed), or a speed for each, "3,1"; borrowed for the creation; NULL: equal */
    bool whole_gradients;   /* gradients are computed as a whole, even where updates do not need that */
    const atomic_int *stop; /* not 0: this rank was asked to stop, and artificial delays end; borrowed for
                               the life of the strategy; or NULL */
};

/* Observers of this rank's steps; they change nothing, and their failure fails the step. The keeper
   belongs to the strategy and is called first. */
enum tr_observer { TR_OBSERVER_KEEPER, TR_OBSERVER_PROBE, TR_OBSERVER_DIGESTS, TR_OBSERVERS };
struct tr_strategy_observer {
    tr_pass_observer layer;    /* after each layer of each forward pass, or NULL */
    tr_update_observer update; /* before each update of the strategy's variables, or NULL */
    void *user;
};

/* Checks what the model file says about the strategy, for `ranks` ranks. TR_EINVAL with file and line. */
tr_status tr_strategy_check(const struct tr_job *job, int ranks);
/* The strategy that the `strategy:` of a model file chooses (NULL: the default), without a job. `name` is
   in static storage. TR_EINVAL with file and line. */
tr_status tr_strategy_peek(const tr_config *choice, const char **name, bool *asynchronous);
/* The first option of the strategy of that name, which its abbreviated form sets; NULL where there is
   none. Static storage. */
const char *tr_strategy_first_option(const char *name);
/* Properties of a run of the job with `workers` ranks that compute. */
struct tr_strategy_outline {
    const char *name; /* static storage */
    int ranks;
    bool asynchronous;
    bool own_hash; /* synchronous, with a hash that is not that of one process */
};
/* TR_EINVAL, with the reason, where so many workers are not possible. */
tr_status tr_strategy_outline(const struct tr_job *job, int workers, struct tr_strategy_outline *out);
/* A simulated asynchronous run: delays of workers follow from a seed. */
struct tr_strategy_simulation {
    int workers;        /* 1 to TR_STRATEGY_RANKS - 1 */
    const double *slow; /* [workers] slowdown of each, at least 1 */
    uint64_t seed;
};
/* The log that the job's strategy would then write, in `log`, which must be empty; release it. The same on
   every machine. TR_EINVAL where the strategy is not asynchronous, or cannot have so many workers. */
tr_status tr_strategy_simulate(const struct tr_job *job, const struct tr_strategy_simulation *wanted,
                               struct tr_update_log *log);
/* How ranks keep parameters, moments and gradients. */
enum tr_strategy_keeping {
    TR_KEEP_ALL,  /* each rank that computes has all; the ranks of a host share one copy of the parameters */
    TR_KEEP_OWN,  /* each has all, with parameters of its own */
    TR_KEEP_PARTS /* each has a part, or not all of these */
};
/* Properties of the job's strategy, before it is made. TR_EINVAL with file and line. */
tr_status tr_strategy_keeping(const struct tr_job *job, enum tr_strategy_keeping *out);
/* Likewise: bytes of gradients that a single process saves on the processor. */
tr_status tr_strategy_spares(const struct tr_job *job, int64_t *bytes);
/* Memory for a rank's part of the job. The training data need not be open. `comm` may be NULL; all except
   the settings is borrowed for the life of the strategy. Returned, destroy with tr_strategy_destroy().
   TR_EINVAL when there are more ranks than can share the job. */
tr_status tr_strategy_create(tr_device *device, const struct tr_job *job, tr_comm *comm,
                             const struct tr_strategy_settings *settings, tr_strategy **out);
/* Accepts NULL, nulls the handle. Local; before the communicator. */
void tr_strategy_destroy(tr_strategy **strategy);
/* Makes the resources of steps; the training data must be open. */
tr_status tr_strategy_begin(tr_strategy *strategy);

/* "allreduce"; static storage. */
const char *tr_strategy_name(const tr_strategy *strategy);
/* All of its options, including defaults, as JSON. Returned, free with tr_free(). TR_ENOMEM. Local. */
tr_status tr_strategy_options_text(const tr_strategy *strategy, char **out);
bool tr_strategy_is_asynchronous(const tr_strategy *strategy);
/* Whether each rank keeps only a part of the variables, and other functions need those that
   tr_strategy_gather() brings to the root. The same on all ranks. */
bool tr_strategy_is_spread(const tr_strategy *strategy);
/* The device that holds and updates the variables; gradients for updates are in its memory, too. */
tr_device *tr_strategy_holder(const tr_strategy *strategy);
/* The state of the run, which is saved, evaluated and hashed. NULL before tr_strategy_begin() where that
   determines which part of them a rank keeps. */
tr_variables *tr_strategy_variables(const tr_strategy *strategy);
/* How `rank` takes part. Local. */
void tr_strategy_placement(const tr_strategy *strategy, int rank, struct tr_placement *out);
/* How microbatches are divided, as "ranks 0 to 1 compute 6, 2 of 8 microbatches"; NULL where equally, from
   the beginning. Borrowed until the next step. Local. */
const char *tr_strategy_shares(const tr_strategy *strategy);
/* Bytes of device memory of this rank. Local. */
size_t tr_strategy_memory(const tr_strategy *strategy);
/* Of these, bytes where the variables are held, and where gradients are computed; the others are for
   exchanging them, or of a class that computes by itself. Local. */
void tr_strategy_memory_parts(const tr_strategy *strategy, int64_t *variables, int64_t *gradients);

/* All ranks have made the strategy and have their parameters, after loading or initializing; `step` steps
   are done. */
tr_status tr_strategy_connect(tr_strategy *strategy, int64_t step);
/* Computes and applies a step. `request` is passed to all ranks in figures->request: a rank's request for
 * something that all must do together.
 */
tr_status tr_strategy_step(tr_strategy *strategy, int64_t step, int32_t request,
                           struct tr_step_figures *figures);
/* Whether steps from now on may begin the next one before they return (not at first). Some do, on a device
   that would else wait for the host; their figures are the same. A caller that allows it takes that step
   next, or destroys the strategy. With several ranks each may allow it or not: what is begun then is what
   changes no variables. */
void tr_strategy_allow_next(tr_strategy *strategy, bool allowed);
/* Whether the next step has begun: it may be changing the variables. Local. */
bool tr_strategy_has_begun(const tr_strategy *strategy);
/* An evaluation of a run of an asynchronous strategy, shared by all ranks that compute: of the state
   gathered last, with moving averages in place of parameters where the job keeps them. */
struct tr_shared_evaluation {
    int64_t set;          /* what is evaluated, for other ranks */
    int64_t count, piece; /* number of examples; and of those that a rank takes at a time, at least 1 */
    int64_t bytes;        /* of the result of an example */
};
struct tr_evaluation_hooks {
    /* Evaluates the examples [first, end) into `found`, (end - first) * bytes. On ranks other than the
       root, the parameters are replaced by those to evaluate. */
    tr_status (*evaluate)(void *user, const struct tr_shared_evaluation *evaluation, int64_t first,
                          int64_t end, void *found);
    /* On the root: receives results of a rank; each example once, in any order. */
    tr_status (*take)(void *user, const struct tr_shared_evaluation *evaluation, int64_t first, int64_t end,
                      const void *found);
    void *user;
};
/* Sets the functions that evaluate on this rank; before a run. Local. */
void tr_strategy_set_evaluation_hooks(tr_strategy *strategy, const struct tr_evaluation_hooks *hooks);
/* Evaluates all examples on all ranks that compute, as they become free; another rank evaluates the
   examples of a lost one. Called by the root, in a run, of an asynchronous strategy. TR_EUNSUPPORTED where
   the class cannot: then the root evaluates alone. */
tr_status tr_strategy_evaluate(tr_strategy *strategy, const struct tr_shared_evaluation *evaluation);
/* Whether the class can. Local. */
bool tr_strategy_shares_evaluations(const tr_strategy *strategy);
/* The part of ranks other than the root in a run of an asynchronous strategy: works until the root ends
   the run. `*stop` is checked at intervals and passes `request` to the root once set. TR_OK at the end of
   the run. */
tr_status tr_strategy_run_worker(tr_strategy *strategy, const atomic_int *stop, int32_t request);
/* Takes the state of another strategy of the same job and class that outlives ranks, and that no living
   rank uses any more: parameters, moments and averages after `step` steps, wherever ranks, including dead
   ones, were in the next step. Between creation and beginning of this strategy; may be repeated.
   Collective. TR_EPEER where needed state was lost, too. */
tr_status tr_strategy_inherit(tr_strategy *strategy, tr_strategy *from, int64_t step);
/* Whether no more steps follow, although the job has more: the log of a replay has ended. Local. */
bool tr_strategy_is_over(const tr_strategy *strategy);
/* The run is over; the root of an asynchronous strategy releases the others. */
tr_status tr_strategy_end(tr_strategy *strategy);
/* Sets the observers of later steps; all zeros: none. Local. Strategies with several passes or variables
   may show only some. */
void tr_strategy_observe(tr_strategy *strategy, enum tr_observer who, struct tr_strategy_observer observer);
/* Before the last checkpoint: an asynchronous run finishes work under way, begins none, and gathers the
   state. Does nothing if synchronous. */
tr_status tr_strategy_drain(tr_strategy *strategy);
/* Gathers state that ranks have up to date only in their shards in the root's variables: before a
   checkpoint, between steps. Does nothing where ranks keep parts, see tr_strategy_collect(). */
tr_status tr_strategy_gather(tr_strategy *strategy);
/* The same for parameters and moving averages, with which the network computes. For any strategy. */
tr_status tr_strategy_gather_parameters(tr_strategy *strategy);
/* Gathers the moving averages, if the job keeps them, on every rank, for the parameters that it has, for
   evaluations in which all take part. Only for synchronous strategies. */
tr_status tr_strategy_gather_averages(tr_strategy *strategy);
/* Call when gathered state is no longer needed; a rank that keeps a part of the variables releases the
   memory of the others. Local. */
void tr_strategy_release(tr_strategy *strategy);
/* An arena of a class: it has the layout of the parameters and is part of the state in checkpoints. All
   ranks know the same ones. */
#define TR_STRATEGY_ARENA_NAME 32
struct tr_strategy_arena {
    char name[TR_STRATEGY_ARENA_NAME]; /* "outer", "replica3.m" */
    /* The arena whose kind of numbers it has, and of which it begins as a copy; TR_ARENAS: numbers for all
       learned parameters, and it begins as zeros. */
    enum tr_arena like;
    float *values;            /* memory of the holder; NULL: another rank has it */
    const int64_t *shard;     /* [size + 1]: floats that are valid on each rank; NULL: all on `rank` */
    int rank;                 /* that has it, where there are no shards */
    struct tr_staging memory; /* memory of the values, where this owns it */
    bool begun;               /* it has values: set by loading, else when all connect */
};
/* Their number, and one of them. The same on all ranks, except for `values`. Local. */
int tr_strategy_arena_count(const tr_strategy *strategy);
struct tr_strategy_arena *tr_strategy_arena(tr_strategy *strategy, int index);
/* The parameter of a tensor in an optimizer's file that belongs to an arena of any class: "conv1.weights"
   of "outer.conv1.weights"; NULL: it belongs to none. Local. */
const char *tr_strategy_arena_parameter(const char *tensor);
/* Whether a checkpoint is written piece by piece, since no rank has everything. The same on all ranks. */
bool tr_strategy_saves_pieces(const tr_strategy *strategy);
/* For such a strategy: brings the floats [begin, end) of an arena, at most TR_STRATEGY_PIECE, to the root,
   where *values then points to them, borrowed until the next call; NULL on other ranks. Arena TR_ARENAS +
   i is the class's arena number i. Ranks that keep none of them return at once. */
#define TR_STRATEGY_PIECE ((int64_t)1 << 20)
tr_status tr_strategy_collect(tr_strategy *strategy, int arena, int64_t begin, int64_t end,
                              const float **values);
/* Writes the same values to the floats [begin, end) of an arena of the state, if it exists, and of all
   replicas of this rank, as far as it keeps some of them and no other rank fills the memory. Between
   steps; all ranks write the same, meet, and connect again. */
tr_status tr_strategy_put(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                          const float *values);
/* SHA-256 of the present parameters, see tr_model_hash(), for all ranks, between steps; if asynchronous,
   only of the root's parameters, and then local. */
tr_status tr_strategy_hash(tr_strategy *strategy, char hex[TR_SHA256_TEXT]);
/* The steps by which an asynchronous run advanced when it settled or its state was gathered, beyond those
 * reported so far; later reports do not include them. Then 0, and always 0 if synchronous. Local.
 */
int64_t tr_strategy_take_ahead(tr_strategy *strategy);
/* On the root of an asynchronous run: sessions and records since the log was last emptied, by the caller,
   which keeps them. NULL elsewhere. Local. */
struct tr_update_log *tr_strategy_updates(tr_strategy *strategy);
/* Sends the root's bytes to all ranks; does nothing if asynchronous. */
tr_status tr_strategy_broadcast(tr_strategy *strategy, void *data, size_t bytes);
/* The name of the first tensor of a step that is not finite, see tr_gradient_locate_nonfinite();
 * "gradient" where this rank cannot find it. For asynchronous strategies only the root calls it.
 */
tr_status tr_strategy_locate_nonfinite(tr_strategy *strategy, int64_t step, char *name, size_t size);
/* A run begins: the figures of ranks are counted anew. Local. */
void tr_strategy_count_anew(tr_strategy *strategy);
/* The figures of all ranks, on the root; zeros elsewhere. Release with tr_strategy_statistics_release(). */
tr_status tr_strategy_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out);
void tr_strategy_statistics_release(struct tr_strategy_statistics *statistics);

static inline bool tr_strategy_is_root(const tr_comm *comm)
{
    return !comm || tr_comm_rank(comm) == 0;
}

#endif
