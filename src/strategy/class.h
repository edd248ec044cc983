/* The interface of a strategy class. To add one: a file or folder here, and a line in strategy/table.c;
 * the manual, the comparison and the tests enumerate the table.
 *
 * The driver (strategy/driver.c) implements the sequence of a step, and all that must hold under every
 * strategy:
 *
 *     begin -> gradient -> judge: is the loss finite, the norm, is it clipped, skipped -> update -> gather
 *           -> judge: are the parameters finite -> exchange of reports and requests -> average
 *
 * A class defines how the gradient of a step is combined (`gradient`), which floats this rank updates
 * (struct tr_strategy, `updates`), how updated shards reach the others (`division`), and when ranks meet
 * (`every`, `average`). Nothing but the driver judges and updates, so a class cannot forget to.
 *
 * A rank trains one *replica* of the network or several. In most classes all ranks train the same replica,
 * and agree on its gradient; those without `gradient` train separate replicas, each on its own examples.
 */
#ifndef TR_STRATEGY_CLASS_H
#define TR_STRATEGY_CLASS_H

#include "base/options/registry.h"
#include "strategy/shares.h"
#include "strategy/strategy.h"
#include "strategy/updates/log.h"

/* Increase with every change of the interface below. */
#define TR_STRATEGY_CLASS_VERSION 5

/* Facts that the options determine, before there is a strategy. */
struct tr_strategy_traits {
    bool asynchronous;      /* ranks do not wait for each other: `work` in place of steps */
    int servers;            /* number of last ranks that compute no gradients */
    int64_t every;          /* steps of a round, after which all ranks meet; 0: 1 */
    int64_t exchange_every; /* steps between exchanges of some ranks within a round; 0: no exchanges */
};

/* The gradient of a step on this rank. */
struct tr_combined {
    int64_t examples; /* of the global batch; for separate replicas of their own, where 0 means that there
                         is nothing to learn */
    /* Memory of the holder, an arena that is valid in the floats that this rank updates; where the norm is
       needed (tr_strategy_measures()), in all whose parameters it keeps. */
    const float *gradient;
    bool applied; /* everything was updated already by tr_driver_update(), and all have the parameters */
};

/* How the variables are divided among ranks, and gathered. */
struct tr_strategy_division {
    /* How `rank` takes part, without `parameters`. Local. NULL: by the bounds of the replicas
       (tr_replicas_create()). */
    void (*placement)(const tr_strategy *strategy, int rank, struct tr_placement *out);
    /* Gathers the shards of some arenas, bits 1 << enum tr_arena: on every rank, those whose parameters
       the rank keeps; or computes them for a state that belongs to no replica. TR_ARENA_PARAMETERS is
       requested after updates that have not been sent to all. If asynchronous: brings a consistent state
       of all arenas to the root; with TR_GATHER_DRAINED first lets all work under way end, without new
       work. Collective. Never NULL. */
    tr_status (*gather)(tr_strategy *strategy, unsigned arenas);
    /* Where ranks keep parts of the variables: copies the floats [begin, end) of an arena to `to` on the
       root, host memory, also from its own arena; ranks that keep none of them return at once. Collective.
       NULL: every rank has all parameters. */
    tr_status (*collect)(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end, float *to);
};
#define TR_GATHER_DRAINED (1u << TR_ARENAS)

/* For ranks that do not wait for each other. */
struct tr_strategy_asynchronous {
    /* On the root returns with the figures of the updates since the last call, having passed `request` to
       itself. On other ranks returns at the end of the run, and passes `request` to the root once *stop is
       set; `figures` is NULL. Both judge by tr_judge(). */
    tr_status (*work)(tr_strategy *strategy, const atomic_int *stop, int32_t request,
                      struct tr_step_figures *figures);
    /* On the root: fills in `out`, zeroed, with room for all ranks, from the reports of all; with NULL:
       ends the run and releases the other ranks. */
    tr_status (*end)(tr_strategy *strategy, struct tr_strategy_statistics *out);
    /* On the root: tr_strategy_evaluate(). NULL: the root evaluates by itself. */
    tr_status (*evaluate)(tr_strategy *strategy, const struct tr_shared_evaluation *evaluation);
    /* tr_strategy_is_over(). NULL: when all steps are done. */
    bool (*is_over)(const tr_strategy *strategy);
};

/* For state that survives the loss of the rank that keeps it, where settings.outlives requests that. */
struct tr_strategy_succession {
    /* `step` steps are done on this rank, and no listener was called yet: stores the state that must
       outlive the rank. Collective. */
    tr_status (*complete)(tr_strategy *strategy, int64_t step);
    /* tr_strategy_inherit(). */
    tr_status (*inherit)(tr_strategy *strategy, tr_strategy *from, int64_t step);
};

struct tr_strategy_class {
    TR_ENTRY;    /* all options have fallbacks */
    int version; /* TR_STRATEGY_CLASS_VERSION; others are refused */
    size_t size; /* of the strategy's own structure, which begins with struct tr_strategy; 0: only that */
    /* Options that a comparison of strategies tries, as on a command line ("mode=async"), where {workers}
       stands for the number of workers; ends with NULL. NULL: the default options. */
    const char *const *variants;
    /* Synchronous, but with different arithmetic: the hash is not that of one process. Nothing else
       differs: it is reproducible, and resumes, clips and skips like the others. */
    bool own_hash;
    /* Names of its own arenas (tr_strategy_make_arena(), tr_strategy_lend_arena()), where # stands for a
       number; for all options, since other classes skip such arenas in checkpoints. Ends with NULL. NULL:
       none. */
    const char *const *arenas;

    /* Derives traits from the options. NULL: all zero. */
    void (*traits)(const void *options, struct tr_strategy_traits *out);
    /* Checks the options against the job, for `ranks` ranks. TR_EINVAL; the caller adds file and line.
       NULL: any number is valid. */
    tr_status (*check)(const struct tr_job *job, const void *options, int ranks);
    /* The class that does the work with these options on `ranks` ranks: this one, or another with the same
       name and options, whose traits then apply. Local. NULL: this one. */
    const struct tr_strategy_class *(*resolve)(const void *options, int ranks);
    /* Makes all that does not need the training data, preferably including the variables
       (strategy->replicas). `destroy` releases it, also after a failure. Collective. NULL: nothing. */
    tr_status (*create)(tr_strategy *strategy);
    /* The rest, and variables that `create` did not make. Collective. NULL: nothing. */
    tr_status (*begin)(tr_strategy *strategy);
    /* All replicas of this rank have their parameters, initialized or loaded; `step` steps are done. A
       barrier follows. Collective. NULL: nothing. */
    tr_status (*connect)(tr_strategy *strategy, int64_t step);
    /* Before anything is released: ends threads of the class that would outlive memory lent to the
       strategy, and cancels its messages. False: some may be using memory of the strategy, which then
       stays until the process ends. The caller ends collectives. Local. NULL: there are none. */
    bool (*cancel)(tr_strategy *strategy);
    /* Releases all that the class made, except replicas, which are released by then. Local. NULL: nothing. */
    void (*destroy)(tr_strategy *strategy);
    /* Computes this rank's part of a step (tr_driver_enqueue(), or by itself) and combines it with the
       others'. It calls tr_driver_open() with the loss over all ranks. Where no norm is needed and the
       loss is known, it may update floats by tr_driver_update(). Between layers it may make communication
       progress (tr_gradient_listen()). Collective. NULL: replicas are trained separately. */
    tr_status (*gradient)(tr_strategy *strategy, int64_t step, struct tr_combined *out);
    /* Between two steps: from the next one on, each rank computes the microbatches given by
       strategy->shares, as from the beginning. Collective. NULL: the class does not use shares. */
    tr_status (*rebalance)(tr_strategy *strategy);
    /* Separate replicas meet after `step` steps. With `all`, it is the end of a round without a bad
       replica, after which the state may be saved: all replicas of all ranks become one state, and the
       call is collective. Otherwise only some ranks wait for each other, and numbers may be infinite or
       NaN. NULL: replicas do not change. */
    tr_status (*average)(tr_strategy *strategy, int64_t step, bool all);
    /* NULL: every rank has and updates all. */
    const struct tr_strategy_division *division;
    /* NULL: never asynchronous. */
    const struct tr_strategy_asynchronous *asynchronous;
    /* NULL: state is lost with a rank. */
    const struct tr_strategy_succession *succession;
    /* Bytes of gradients that a single process saves, on a device that computes in host memory. NULL:
       none. */
    int64_t (*spares)(const struct tr_job *job, const void *options);
};
/* A copy of the network with the resources to train it. */
struct tr_replica {
    tr_variables *variables;
    tr_gradient *gradient; /* NULL: another rank or the class computes it */
};

struct tr_range {
    int64_t begin, end; /* floats of an arena */
};

/* Of the driver: */
struct tr_report;
struct tr_digest;
struct tr_pending_steps;

/* The head of every strategy's own structure. */
struct tr_strategy {
    const struct tr_strategy_class *class;
    void *options; /* of class->options_size */
    struct tr_strategy_traits traits;
    tr_device *device; /* that computes */
    tr_device *holder; /* that holds and updates the variables; often the same */
    const struct tr_job *job;
    tr_comm *comm;  /* NULL: alone */
    tr_comm *part;  /* a part of the ranks whose traffic also counts; NULL: none */
    int rank, size; /* a single process: 0 of 1 */
    int servers;    /* number of last ranks, which update and compute no gradients; 0: all ranks do both */
    /* `create` or `begin` make the contents, which are released before `destroy`. */
    struct tr_replica *replicas; /* [replica_count] of this rank, at least 1 */
    struct tr_replica single;    /* memory for one replica, unless tr_replicas_create() makes them */
    int replica_count;
    /* The state of the run (tr_strategy_variables()) where it belongs to no replica; made by `create`.
       NULL: it is the first replica's. */
    tr_variables *state;
    struct tr_strategy_arena *arenas; /* [arena_count] of the class's own */
    int arena_count;
    int64_t *replica_bound; /* [size + 1]: those of rank r are from replica_bound[r] on; NULL: one for each
                               rank */
    /* The parts of its replicas that this rank updates, in any order, borrowed; NULL: all. */
    const struct tr_range *updates;
    int update_count;
    struct tr_shares shares; /* which microbatches ranks compute, where the class has `share` */
    size_t memory;    /* bytes of device memory and windows that the class took besides the replicas', */
    size_t computing; /* of the device that computes alone, */
    size_t holding;   /* and of the device that holds the variables: each byte counts in one of the three */
    struct tr_strategy_settings settings;
    struct tr_evaluation_hooks hooks;
    struct tr_strategy_observer observer[TR_OBSERVERS], all_observers; /* the second: the observers that
                                                                          all replicas call */
    struct tr_rank_statistics done;                                    /* compute_seconds, contributions */
    int64_t ahead;                                                     /* see tr_strategy_take_ahead() */
    struct tr_update_log log; /* for an asynchronous strategy, on the root: see tr_strategy_updates() */
    float *piece;             /* [TR_STRATEGY_PIECE], see tr_strategy_collect() */
    /* The driver's: */
    struct tr_report *reports; /* of all replicas of all ranks, on the root; elsewhere of this rank's */
    struct tr_digest *digest;  /* for all replicas, on all ranks */
    int64_t report_count;
    float sums[TR_PASS_SUMS]; /* of loss and of correctness over the ranks, once the step is open */
    bool open, spoilt;        /* the loss is known; it is not finite, and no update is applied */
    bool allows_next;         /* see tr_strategy_allow_next() */
    /* The holder's report on the step, valid once `answered` is reached, if it was requested; pinned. */
    struct tr_variables_answer *answer;
    tr_event answered;
    bool asked;
    struct tr_pending_steps *pending; /* for a process that decides alone (driver_alone.c), else NULL */
};

/* Whether ranks keep only parts of the variables. */
static inline bool tr_strategy_class_spreads(const struct tr_strategy_class *class)
{
    return class->division && class->division->collect;
}

/* All classes; its entries are of struct tr_strategy_class. */
extern const struct tr_registry tr_strategies;

/* Class number `index`, from 0, which is the default; NULL beyond the last. */
static inline const struct tr_strategy_class *tr_strategy_class_at(int index)
{
    return (const struct tr_strategy_class *)tr_strategies.entries[index];
}

extern const struct tr_strategy_class tr_strategy_all_reduce, tr_strategy_easgd, tr_strategy_gossip,
    tr_strategy_local_sgd, tr_strategy_parameter_server, tr_strategy_pipeline;
/* A replay (struct tr_strategy_settings, `log`), which a model file cannot choose. */
extern const struct tr_strategy_class tr_strategy_replay;
/* Adds a class, in static storage, to the available ones, before the first job is opened; for tests and
   experiments. TR_EINVAL when the name is taken, the version differs, or the table is full. */
tr_status tr_strategy_register(const struct tr_strategy_class *class);

/* ---- what the driver does for classes ---- */

/* Whether steps that are not finite are skipped. */
bool tr_strategy_skips(const struct tr_job *job);
/* Whether each step needs the norm of the whole gradient. */
bool tr_strategy_measures(const struct tr_job *job);
/* tr_gradient_step() of the first replica with the time taken and stragglers' delays. */
tr_status tr_driver_compute(tr_strategy *strategy, int64_t step, int64_t *examples);
/* tr_gradient_enqueue() of the first replica, for a class that waits for parts of the gradient as they
   complete and then calls tr_driver_count(); where the rank computes no gradient, only gives the number of
   examples. */
tr_status tr_driver_enqueue(tr_strategy *strategy, int64_t step, int64_t *examples);
/* Call when `step` has been computed since `start`: adds the time, and stragglers' delays. */
void tr_driver_count(tr_strategy *strategy, int64_t step, double start);
/* For a class's `gradient`, where this rank computes a whole step alone: that of the first replica. */
tr_status tr_driver_compute_alone(tr_strategy *strategy, int64_t step, struct tr_combined *out);
/* Sets the sums of loss and correctness of this step over all ranks, in host memory. Then updates may be
   applied, unless the loss is not finite. */
void tr_driver_open(tr_strategy *strategy, const float sums[TR_PASS_SUMS]);
/* Enqueues the update of the floats [begin, end) of the first replica by their gradient, in a step that is
   open; does nothing if its loss is bad. Not where the norm is needed. */
tr_status tr_driver_update(tr_strategy *strategy, const float *gradient, int64_t begin, int64_t end);
/* The same for an operation that computes the gradient and applies it, see tr_variables_update_of(); the
   loss must not be bad. */
bool tr_driver_update_of(const tr_strategy *strategy, int64_t begin, int64_t end, struct tr_op_update *out);
/* Enqueues, after the last update of the step, the request whether the parameters are finite. For classes
   that wait for something after it anyway; for others the driver does it. */
tr_status tr_driver_ask(tr_strategy *strategy);

/* The consequence for a gradient of a loss and, where needed, a norm: decided only here. */
struct tr_verdict {
    bool bad_loss; /* the loss is not finite: no update may be applied */
    bool skipped;  /* no update is applied and the run continues, as the job says */
    float clip;    /* factor for the gradient, for callers that do not let a device clip */
};
/* `finite`: the loss is; `norm`: 0 where it is not needed or not known yet. */
struct tr_verdict tr_judge(const struct tr_job *job, bool finite, double norm);

/* ---- arenas of a class's own (arenas.c) ---- */

/* For `create`, on all ranks in the same order; the class names it. Adds an arena of zeros, of which rank
   r has valid floats [shard[r], shard[r + 1]); `shard` [size + 1] and *out are borrowed for the life of
   the strategy. It has its values, from a checkpoint or zeros, when the class's `connect` is called.
   Local. TR_ENOMEM. */
tr_status tr_strategy_make_arena(tr_strategy *strategy, const char *name, const int64_t *shard, float **out);
/* The same with existing memory, of `rank` only; NULL on others. It begins as a copy of an arena of the
   state. */
tr_status tr_strategy_lend_arena(tr_strategy *strategy, const char *name, enum tr_arena like, int rank,
                                 float *values);
/* For the strategy: sets the first values of arenas that no checkpoint had. Local. */
tr_status tr_strategy_begin_arenas(tr_strategy *strategy);
/* Copies floats of one of them to the root's piece. Ranks that keep some send them. */
tr_status tr_strategy_bring_arena(tr_strategy *strategy, int index, int64_t begin, int64_t end);
int64_t tr_strategy_arenas_memory(const tr_strategy *strategy);
void tr_strategy_release_arenas(tr_strategy *strategy);

/* ---- other services ---- */

/* Sleeps as a straggler does after `seconds` of work on `step`; for classes that compute by themselves. */
void tr_strategy_delay(const tr_strategy *strategy, int64_t step, double seconds);
/* Host memory of `bytes` bytes (0 allowed) that the ranks of a host share; *out is NULL where they cannot
   share memory. Collective. Returned, destroy with tr_window_destroy(). */
tr_status tr_strategy_window(tr_comm *comm, size_t bytes, tr_window **out);
/* The same with memory for the bytes [begin, end) only, see tr_window_create_sparse(). */
tr_status tr_strategy_window_sparse(tr_comm *comm, size_t bytes, size_t begin, size_t end, tr_window **out);
/* Makes messages between the ranks progress while this one computes, unless only small ones are sent:
   because `window`, which may be NULL, has the exchanged data, and all are on one host. */
tr_status tr_strategy_use_progress_thread(tr_strategy *strategy, const tr_window *window);
/* Gathers an arena on all ranks, and on its device: rank r has the bytes [bound[r], bound[r + 1]) from
   float `begin` on. `window` as for tr_comm_all_gather(). Waits for the ranks; the copy to the device is
   enqueued, and others write to `window` again only after this rank has sent them something later.
   Collective. */
tr_status tr_strategy_join(tr_comm *comm, const struct tr_staging *arena, int64_t begin, const int64_t *bound,
                           tr_window *window, const char *name);
/* Waits for an operation that was just started with `status`. */
tr_status tr_strategy_wait(tr_strategy *strategy, tr_status status, tr_ticket *ticket);

#endif
