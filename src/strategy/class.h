/* What a kind of strategy provides. To add one: a file or folder here, a line in strategy/table.c; the
 * manual, the comparison and the tests enumerate the table.
 *
 * The driver (strategy/driver.c) has the sequence of a step, and all that must hold under every strategy:
 *
 *     begin -> gradient -> judge: is the loss finite, the norm, is it clipped, skipped -> update -> gather
 *           -> judge: are the parameters finite -> exchange of reports and requests -> average
 *
 * A class says how the gradient of a step comes together (`gradient`), which floats this rank updates (struct
 * tr_strategy, `updates`), how updated shards reach the others (`division`), and when ranks meet (`every`,
 * `average`). Nothing but the driver judges and updates, so a class cannot forget to.
 *
 * A rank trains one *replica* of the network or several. In most classes all ranks train the same replica,
 * and agree on its gradient; those without `gradient` train replicas apart, each on examples of its own.
 */
#ifndef TR_STRATEGY_CLASS_H
#define TR_STRATEGY_CLASS_H

#include "base/options/registry.h"
#include "strategy/shares.h"
#include "strategy/strategy.h"
#include "strategy/updates/log.h"

/* Changes with the meaning of what follows. */
#define TR_STRATEGY_CLASS_VERSION 5

/* What options decide, before there is a strategy. */
struct tr_strategy_traits {
    bool asynchronous;      /* ranks do not wait for each other: `work` in place of steps */
    int servers;            /* ranks beside the workers: the last ones, which compute no gradients */
    int64_t every;          /* steps of a round, after which all ranks meet; 0: 1 */
    int64_t exchange_every; /* steps between exchanges of some within a round; 0: there are none */
};

/* The gradient of a step in this rank's hands. */
struct tr_combined {
    int64_t examples; /* of the global batch; of replicas apart their own, where 0 means nothing to learn */
    /* Memory of the holder, an arena that is right in the floats that this rank updates; where the norm is
       wanted (tr_strategy_measures()), in all that it keeps parameters of. */
    const float *gradient;
    bool applied; /* all was updated on the way by tr_driver_update(), and the parameters went to all */
};

/* How the variables are divided among ranks, and gathered. */
struct tr_strategy_division {
    /* How `rank` takes part, without `parameters`. Local. NULL: as the bounds of the replicas say
       (tr_replicas_create()). */
    void (*placement)(const tr_strategy *strategy, int rank, struct tr_placement *out);
    /* Gathers the shares of some arenas, bits 1 << enum tr_arena: on every rank, those whose parameters the
       rank keeps; or forms them in a state that belongs to no replica. TR_ARENA_PARAMETERS is asked for after
       updates that did not go to all on the way. If asynchronous: brings one moment's state of all arenas to
       the root, and with TR_GATHER_DRAINED lets what is under way come to an end before, and nothing new
       begin. Collective. Never NULL. */
    tr_status (*gather)(tr_strategy *strategy, unsigned arenas);
    /* Where ranks keep parts of the variables: brings the floats [begin, end) of an arena to `to` on the
       root, host memory, that of its own arena, too; ranks that keep none of them return at once. Collective.
       NULL: every rank has all parameters. */
    tr_status (*collect)(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end, float *to);
};
#define TR_GATHER_DRAINED (1u << TR_ARENAS)

/* Of ranks that do not wait for each other. */
struct tr_strategy_asynchronous {
    /* The root's returns with the figures of what was updated meanwhile, having handed `request` to itself.
       The others' return at the end of the run, and hand `request` to the root once *stop is set; `figures`
       is NULL. They judge by tr_judge(). */
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

/* For state that survives the loss of the rank that keeps it, where settings.outlives asks for that. */
struct tr_strategy_succession {
    /* `step` steps are done on this rank, and no listener was called yet: stores the state that is to outlive
       the rank. Collective. */
    tr_status (*complete)(tr_strategy *strategy, int64_t step);
    /* tr_strategy_inherit(). */
    tr_status (*inherit)(tr_strategy *strategy, tr_strategy *from, int64_t step);
};

struct tr_strategy_class {
    TR_ENTRY;    /* all options have fallbacks */
    int version; /* TR_STRATEGY_CLASS_VERSION; others are refused */
    size_t size; /* of the strategy's own structure, which begins with struct tr_strategy; 0: just that */
    /* What a comparison of strategies tries: options as on a command line ("mode=async"), where {workers}
       stands for the number of workers; ends with NULL. NULL: the options as they are by default. */
    const char *const *variants;
    /* Synchronous, with an arithmetic of its own: the hash is not that of one process. Nothing else is
       different: it repeats itself, is resumed, clips and skips as the others. */
    bool own_hash;
    /* Names of arenas of its own (tr_strategy_make_arena(), tr_strategy_lend_arena()), where # stands for a
       number; whatever the options, since other classes leave out what they find of these in checkpoints.
       Ends with NULL. NULL: none. */
    const char *const *arenas;

    /* What follows from the options. NULL: all zero. */
    void (*traits)(const void *options, struct tr_strategy_traits *out);
    /* Checks the options against the job, for `ranks` ranks. TR_EINVAL; the caller adds file and line. NULL:
       any number will do. */
    tr_status (*check)(const struct tr_job *job, const void *options, int ranks);
    /* The class that does the work with these options on `ranks` ranks: this one, or another with the same
       name and options, whose traits hold then. Local. NULL: this one. */
    const struct tr_strategy_class *(*resolve)(const void *options, int ranks);
    /* What can be made before the training data are there: best all, variables included
       (strategy->replicas). What was made is released by `destroy`, also after a failure. Collective. NULL:
       nothing. */
    tr_status (*create)(tr_strategy *strategy);
    /* The rest, and variables that `create` did not make. Collective. NULL: nothing. */
    tr_status (*begin)(tr_strategy *strategy);
    /* The parameters are there, initialized or loaded, on all replicas of this rank; `step` steps are done. A
       barrier follows. Collective. NULL: nothing. */
    tr_status (*connect)(tr_strategy *strategy, int64_t step);
    /* Before anything is released: ends threads of the class that would outlive what was lent to the
       strategy, and gives up messages of its own. False: some may still use memory of the strategy, which
       then stays until the process ends. Collectives are ended by the caller. Local. NULL: there are none. */
    bool (*cancel)(tr_strategy *strategy);
    /* Releases what the class made, but for replicas, which are released by then. Local. NULL: nothing. */
    void (*destroy)(tr_strategy *strategy);
    /* Computes this rank's part of a step (tr_driver_enqueue(), or by itself) and joins it with the others'.
       It calls tr_driver_open() with the loss over all ranks. Where no norm is wanted and the loss is
       known, floats may be updated by tr_driver_update() on the way. Between layers, communication may be
       moved on (tr_gradient_listen()). Collective. NULL: replicas are trained apart. */
    tr_status (*gradient)(tr_strategy *strategy, int64_t step, struct tr_combined *out);
    /* Between two steps: from the next one on, each rank computes the microbatches that strategy->shares has
       for it, as it does from the beginning. Collective. NULL: the class does not look there. */
    tr_status (*rebalance)(tr_strategy *strategy);
    /* Replicas apart meet: `step` steps are done. With `all`, it is the end of a round in which none was bad,
       and what follows may be saved: all replicas of all ranks become one state. Collective then; else only
       some ranks wait for each other, and numbers need not be finite. NULL: they stay as they are. */
    tr_status (*average)(tr_strategy *strategy, int64_t step, bool all);
    /* NULL: every rank has and updates all. */
    const struct tr_strategy_division *division;
    /* NULL: never asynchronous. */
    const struct tr_strategy_asynchronous *asynchronous;
    /* NULL: state is lost with a rank. */
    const struct tr_strategy_succession *succession;
    /* Bytes of gradients that a process alone does without, on a device that computes in host memory. NULL:
       none. */
    int64_t (*spares)(const struct tr_job *job, const void *options);
};
/* A copy of the network with what it takes to train it. */
struct tr_replica {
    tr_variables *variables;
    tr_gradient *gradient; /* NULL: another rank computes it, or the class does */
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
    tr_device *holder; /* that holds the variables and updates them; often the same */
    const struct tr_job *job;
    tr_comm *comm;  /* NULL: alone */
    tr_comm *part;  /* a part of the ranks whose traffic counts, too; NULL: none */
    int rank, size; /* 0 of 1 alone */
    int servers;    /* the last ranks, which update and compute no gradients; 0: all do both */
    /* What is in them is made by `create` or `begin`, and released before `destroy`. */
    struct tr_replica *replicas; /* [replica_count] of this rank, at least 1 */
    struct tr_replica single;    /* where they are, unless by tr_replicas_create() */
    int replica_count;
    /* The state of the run (tr_strategy_variables()) where it is no replica's; made by `create`. NULL: it is
       the first replica's. */
    tr_variables *state;
    struct tr_strategy_arena *arenas; /* [arena_count] of the class's own */
    int arena_count;
    int64_t *replica_bound; /* [size + 1]: those of rank r are from replica_bound[r] on; NULL: one a rank */
    /* What this rank updates of its replicas, ascending or not, borrowed; NULL: all. */
    const struct tr_range *updates;
    int update_count;
    struct tr_shares shares; /* which microbatches ranks compute, where the class has `share` */
    size_t memory;    /* bytes of device memory and windows that the class took beside the replicas', */
    size_t computing; /* of the device that computes alone, */
    size_t holding;   /* and of that which holds the variables: each byte in one of the three */
    struct tr_strategy_settings settings;
    struct tr_evaluation_hooks hooks;
    struct tr_strategy_observer observer[TR_OBSERVERS], all_observers; /* the second: what all of them see */
    struct tr_rank_statistics done;                                    /* compute_seconds, contributions */
    int64_t ahead;                                                     /* see tr_strategy_take_ahead() */
    struct tr_update_log log; /* of an asynchronous one, on the root: see tr_strategy_updates() */
    float *piece;             /* [TR_STRATEGY_PIECE], see tr_strategy_collect() */
    /* The driver's: */
    struct tr_report *reports; /* of all replicas of all ranks, on the root; else those of this rank's */
    struct tr_digest *digest;  /* of all, on all ranks */
    int64_t report_count;
    float sums[TR_PASS_SUMS]; /* of loss and of correctness over the ranks, once the step is open */
    bool open, spoilt;        /* the loss is known; it is not finite, and nothing is applied */
    bool allows_next;         /* see tr_strategy_allow_next() */
    /* What the holder says of the step once `answered` is reached, if it was asked; pinned. */
    struct tr_variables_answer *answer;
    tr_event answered;
    bool asked;
    struct tr_pending_steps *pending; /* of a process that decides alone (driver_alone.c), else NULL */
};

/* Whether ranks keep parts of the variables only. */
static inline bool tr_strategy_class_spreads(const struct tr_strategy_class *class)
{
    return class->division && class->division->collect;
}

/* All classes; its entries are of struct tr_strategy_class. */
extern const struct tr_registry tr_strategies;

/* Class number `index`, counted from 0, which is the default; NULL beyond the last. */
static inline const struct tr_strategy_class *tr_strategy_class_at(int index)
{
    return (const struct tr_strategy_class *)tr_strategies.entries[index];
}

extern const struct tr_strategy_class tr_strategy_all_reduce, tr_strategy_easgd, tr_strategy_gossip,
    tr_strategy_local_sgd, tr_strategy_parameter_server, tr_strategy_pipeline;
/* A replay (struct tr_strategy_settings, `log`), which no model file chooses. */
extern const struct tr_strategy_class tr_strategy_replay;
/* Adds a class, in static storage, to those that can be chosen, before the first job is opened; for tests
   and experiments. TR_EINVAL when the name is taken, the version another, or the table full. */
tr_status tr_strategy_register(const struct tr_strategy_class *class);

/* ---- what the driver does for classes ---- */

/* Whether steps that are not finite are left out. */
bool tr_strategy_skips(const struct tr_job *job);
/* Whether the whole gradient's norm is wanted in each step. */
bool tr_strategy_measures(const struct tr_job *job);
/* tr_gradient_step() of the first replica with the time taken and stragglers' delays. */
tr_status tr_driver_compute(tr_strategy *strategy, int64_t step, int64_t *examples);
/* tr_gradient_enqueue() of the first replica, for a class that waits for parts of the gradient as they come
   and then calls tr_driver_count(); only the number of examples where the rank computes no gradient. */
tr_status tr_driver_enqueue(tr_strategy *strategy, int64_t step, int64_t *examples);
/* `step` has been computed since `start`: the time taken, and stragglers' delays. */
void tr_driver_count(tr_strategy *strategy, int64_t step, double start);
/* For a class's `gradient`, where this rank computes a whole step by itself: that of the first replica. */
tr_status tr_driver_compute_alone(tr_strategy *strategy, int64_t step, struct tr_combined *out);
/* The sums of loss and correctness of this step over all ranks, in host memory. From then on updates may be
   applied, unless the loss is not finite. */
void tr_driver_open(tr_strategy *strategy, const float sums[TR_PASS_SUMS]);
/* Enqueues the update of the floats [begin, end) of the first replica by their gradient, on the way of a step
   that is open; nothing happens if its loss is bad. Not where the norm is wanted. */
tr_status tr_driver_update(tr_strategy *strategy, const float *gradient, int64_t begin, int64_t end);
/* The same for an operation that forms the gradient and applies it, see tr_variables_update_of(); the loss is
   not bad. */
bool tr_driver_update_of(const tr_strategy *strategy, int64_t begin, int64_t end, struct tr_op_update *out);
/* Enqueues, after the last update on the way, the question whether the parameters are finite. For classes
   that wait for something after it anyway; for others the driver asks. */
tr_status tr_driver_ask(tr_strategy *strategy);

/* The consequence of a loss and, where it is wanted, a norm for a gradient: decided here alone. */
struct tr_verdict {
    bool bad_loss; /* the loss is not finite: nothing may be applied */
    bool skipped;  /* nothing is applied and the run goes on, since the job says so */
    float clip;    /* factor of the gradient, for those who do not have a device clip */
};
/* `finite`: the loss is; `norm`: 0 where it is not wanted or not known yet. */
struct tr_verdict tr_judge(const struct tr_job *job, bool finite, double norm);

/* ---- arenas of a class's own (arenas.c) ---- */

/* For `create`, on all ranks in the same order; the class names it. Adds an arena with zeros, of which rank r
   has the floats [shard[r], shard[r + 1]) right; `shard`, of the size + 1 ranks, and *out are borrowed for
   the life of the strategy. Its values are there, from a checkpoint or as zeros, when the class's `connect`
   is called. Local. TR_ENOMEM. */
tr_status tr_strategy_make_arena(tr_strategy *strategy, const char *name, const int64_t *shard, float **out);
/* The same with memory that there is already, of `rank` alone; NULL on others. It begins as a copy of an
   arena of the state. */
tr_status tr_strategy_lend_arena(tr_strategy *strategy, const char *name, enum tr_arena like, int rank,
                                 float *values);
/* For the strategy: those that no checkpoint had begin. Local. */
tr_status tr_strategy_begin_arenas(tr_strategy *strategy);
/* Floats of one of them to the root's piece. Those who keep some send them. */
tr_status tr_strategy_bring_arena(tr_strategy *strategy, int index, int64_t begin, int64_t end);
int64_t tr_strategy_arenas_memory(const tr_strategy *strategy);
void tr_strategy_release_arenas(tr_strategy *strategy);

/* ---- other services ---- */

/* Sleeps as a straggler does after `seconds` of work on `step`; for classes that compute by themselves. */
void tr_strategy_delay(const tr_strategy *strategy, int64_t step, double seconds);
/* Host memory of `bytes` bytes (0 allowed) that the ranks of a host share; *out is NULL where they cannot
   share memory. Collective. Returned, destroy with tr_window_destroy(). */
tr_status tr_strategy_window(tr_comm *comm, size_t bytes, tr_window **out);
/* The same with room for the bytes [begin, end) only, see tr_window_create_sparse(). */
tr_status tr_strategy_window_sparse(tr_comm *comm, size_t bytes, size_t begin, size_t end, tr_window **out);
/* Lets messages between the ranks move while this one computes, unless but words go between them: because
   `window`, which may be NULL, has what they exchange, and all are on one host. */
tr_status tr_strategy_use_progress_thread(tr_strategy *strategy, const tr_window *window);
/* Brings what ranks have of an arena together on all, and on the device that it is of: rank r has the bytes
   [bound[r], bound[r + 1]) from float `begin` on. `window` as for tr_comm_all_gather(). Waits for the ranks;
   the way to the device is enqueued, and others write to `window` again only when this rank has sent them
   something after that. Collective. */
tr_status tr_strategy_join(tr_comm *comm, const struct tr_staging *arena, int64_t begin, const int64_t *bound,
                           tr_window *window, const char *name);
/* Waits for an operation that was just started with `status`; local nothing. */
tr_status tr_strategy_wait(tr_strategy *strategy, tr_status status, tr_ticket *ticket);

#endif
