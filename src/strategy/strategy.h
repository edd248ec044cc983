/* Strategies: how ranks share the work of a job and come to the same parameters.
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
    int64_t steps;    /* by which the run went on: 1, or what all ranks did meanwhile; if one was bad
                         (bad_loss, poisoned), that was the last of them */
    int64_t examples; /* of these steps' batches */
    float loss;       /* sum over the examples */
    float correct;    /* number of examples, classification only */
    float norm;       /* of the gradient, where it was measured, mean over the steps; else NaN */
    bool skipped;     /* the step, or one of them, was not applied, since it was not finite */
    bool bad_loss;    /* the loss is not finite, and nothing was applied */
    bool poisoned;    /* a parameter is not finite after the step */
    int32_t request;  /* the bitwise or of all ranks' requests */
    bool rebalanced;  /* from the next step on, ranks compute other microbatches, see tr_strategy_shares() */
};

/* How a rank takes part. */
struct tr_placement {
    const char *role;                         /* "worker", "server", "stage" */
    int64_t first_microbatch, end_microbatch; /* that it computes of each step */
    int first_layer, end_layer;               /* that it computes */
    int64_t first_update, end_update; /* floats of the parameter arena that it updates; -1: scattered */
    int64_t updates;                  /* number of floats that it updates */
    bool confined;                    /* it keeps parameters of its own layers only */
    int64_t parameters; /* numbers of the network that it keeps; tr_strategy_placement() counts them */
};

/* What a rank did so far, in steps; not what it took to save and to evaluate. */
struct tr_rank_statistics {
    int64_t bytes_sent, bytes_received, bytes_shared; /* see struct tr_comm_statistics */
    double wait_seconds;                              /* for others */
    double compute_seconds;                           /* of gradients */
    int64_t contributions;                            /* gradients that were applied, if asynchronous */
};

#define TR_STALENESS_BINS 64
struct tr_strategy_statistics {
    int ranks;
    struct tr_rank_statistics *rank;      /* [ranks]; owned, tr_strategy_statistics_release() */
    bool asynchronous;                    /* the following mean something */
    int64_t staleness[TR_STALENESS_BINS]; /* gradients by the number of updates that they missed; the last bin
                                             takes the rest */
    int64_t dropped;                      /* gradients that came too late */
};

typedef struct tr_strategy tr_strategy;

#define TR_STRATEGY_RANKS 4096

/* Stragglers on demand, to study what they do; they change no bits of synchronous strategies. */
struct tr_strategy_settings {
    tr_device *holder; /* that holds the variables and updates them, borrowed for the life of the strategy;
                          NULL: the one that computes */
    double slow;       /* this rank computes so many times slower; <= 1: not */
    const struct tr_update_log
        *log;            /* of an asynchronous run, checked: the strategy goes through it again, whatever the
                            job says; borrowed for the life of the strategy. NULL: the job's strategy */
    uint64_t delay_seed; /* random delays of all ranks follow from it, about half a step each; 0: none */
    bool outlives; /* what the ranks have in memory is to outlive the death of some, see tr_strategy_inherit()
                    */
    int replicas_of_state; /* then, where ranks share no memory: copies of each rank's moments with another;
                              0 or 1 */
    const char *shares; /* how microbatches are shared among the workers: "equal", "auto" (by measured speed),
                           or a speed for each, "3,1"; borrowed for the creation; NULL: equal */
    bool whole_gradients;   /* gradients are formed as a whole, though updates do not need that */
    const atomic_int *stop; /* not 0: this rank was asked to stop, and is held up no longer;
                                          borrowed for the life of the strategy; or NULL */
};

/* Those who may look on while this rank computes steps; they change nothing, and their failure fails the
   step. The keeper belongs to the strategy and is called first. */
enum tr_observer { TR_OBSERVER_KEEPER, TR_OBSERVER_PROBE, TR_OBSERVER_DIGESTS, TR_OBSERVERS };
struct tr_strategy_observer {
    tr_pass_observer layer;    /* after each layer of each forward pass, or NULL */
    tr_update_observer update; /* before each update of the strategy's variables, or NULL */
    void *user;
};

/* Checks what the model file says about the strategy, for `ranks` ranks. TR_EINVAL with file and line. */
tr_status tr_strategy_check(const struct tr_job *job, int ranks);
/* What the `strategy:` of a model file chooses (NULL: the default), before there is a job. `name` is in
   static storage. TR_EINVAL with file and line. */
tr_status tr_strategy_peek(const tr_config *choice, const char **name, bool *asynchronous);
/* The first option of the strategy of that name, which its short form gives; NULL where there is no such one.
   Static storage. */
const char *tr_strategy_first_option(const char *name);
/* What a run of the job would be in which `workers` ranks compute. */
struct tr_strategy_outline {
    const char *name; /* static storage */
    int ranks;
    bool asynchronous;
    bool own_hash; /* synchronous, with a hash that is not that of one process */
};
/* TR_EINVAL, with the reason, where that many make no sense. */
tr_status tr_strategy_outline(const struct tr_job *job, int workers, struct tr_strategy_outline *out);
/* An asynchronous run that is only thought of: delays of workers that follow from a seed. */
struct tr_strategy_simulation {
    int workers;        /* 1 to TR_STRATEGY_RANKS - 1 */
    const double *slow; /* [workers] so many times slower, at least 1 */
    uint64_t seed;
};
/* The log that the job's strategy would write then, in `log`, which is empty before; release it. The same on
   every machine. TR_EINVAL where the strategy is not asynchronous, or cannot be of so many workers. */
tr_status tr_strategy_simulate(const struct tr_job *job, const struct tr_strategy_simulation *wanted,
                               struct tr_update_log *log);
/* What ranks keep of parameters, moments and gradients. */
enum tr_strategy_keeping {
    TR_KEEP_ALL,  /* each rank that computes has all, the ranks of a host one copy of the parameters */
    TR_KEEP_PARTS /* each has a part, or not all of these */
};
/* What the job's strategy will do, before it is made. TR_EINVAL with file and line. */
tr_status tr_strategy_keeping(const struct tr_job *job, enum tr_strategy_keeping *out);
/* Likewise: bytes of gradients that a process alone does without on the processor. */
tr_status tr_strategy_spares(const struct tr_job *job, int64_t *bytes);
/* Memory for a rank's part of the job. The training data are not needed yet. `comm` may be NULL; all borrowed
   for the life of the strategy, but for the settings. Returned, destroy with tr_strategy_destroy(). TR_EINVAL
   when the ranks are more than can share the job. */
tr_status tr_strategy_create(tr_device *device, const struct tr_job *job, tr_comm *comm,
                             const struct tr_strategy_settings *settings, tr_strategy **out);
/* Accepts NULL, nulls the handle. Local; before the communicator. */
void tr_strategy_destroy(tr_strategy **strategy);
/* Makes what steps need, once the training data are open. */
tr_status tr_strategy_begin(tr_strategy *strategy);

/* "allreduce"; static storage. */
const char *tr_strategy_name(const tr_strategy *strategy);
/* All of its options, given or not, as JSON. Returned, free with tr_free(). TR_ENOMEM. Local. */
tr_status tr_strategy_options_text(const tr_strategy *strategy, char **out);
bool tr_strategy_is_asynchronous(const tr_strategy *strategy);
/* Whether each rank keeps a part of the variables only, and other functions need what tr_strategy_gather()
   brings to the root. The same on all ranks. */
bool tr_strategy_is_spread(const tr_strategy *strategy);
/* The device that holds the variables and updates them; gradients that updates take are its memory, too. */
tr_device *tr_strategy_holder(const tr_strategy *strategy);
/* The state of the run: what is saved, evaluated and hashed. NULL before tr_strategy_begin() where that
   decides which part of them a rank keeps. */
tr_variables *tr_strategy_variables(const tr_strategy *strategy);
/* How `rank` takes part. Local. */
void tr_strategy_placement(const tr_strategy *strategy, int rank, struct tr_placement *out);
/* How microbatches are shared, as "ranks 0 to 1 compute 6, 2 of 8 microbatches"; NULL where that is equally,
   and was so from the beginning. Borrowed until the next step. Local. */
const char *tr_strategy_shares(const tr_strategy *strategy);
/* Bytes of device memory of this rank. Local. */
size_t tr_strategy_memory(const tr_strategy *strategy);
/* Those that lie where the variables are held, and where gradients are computed; the others are for
   exchanging them, or of a class that computes by itself. Local. */
void tr_strategy_memory_parts(const tr_strategy *strategy, int64_t *variables, int64_t *gradients);

/* All ranks are here and have their parameters; after loading or initializing, `step` steps are done. */
tr_status tr_strategy_connect(tr_strategy *strategy, int64_t step);
/* Computes and applies a step. `request` is handed to all ranks in figures->request: a rank asks for
 * something that all must do together. */
tr_status tr_strategy_step(tr_strategy *strategy, int64_t step, int32_t request,
                           struct tr_step_figures *figures);
/* Whether steps from now on may begin the next one before they return (not at first). Some do, on a device
   that would else wait for the host; their figures are the same. A caller that allows it takes that step
   next, or destroys the strategy. */
void tr_strategy_allow_next(tr_strategy *strategy, bool allowed);
/* Whether the next step has been begun: variables may be on the way to what it makes of them. Local. */
bool tr_strategy_has_begun(const tr_strategy *strategy);
/* An evaluation of a run of an asynchronous strategy, which all who compute share: of the state gathered
   last, with moving averages in place of parameters where the job keeps them. */
struct tr_shared_evaluation {
    int64_t set;          /* what is evaluated, for the ranks to know */
    int64_t count, piece; /* examples; and those that one takes at a time, at least 1 */
    int64_t bytes;        /* of what is found about an example */
};
struct tr_evaluation_hooks {
    /* Finds out about the examples [first, end), `found` being (end - first) * bytes. On others than the
       root, what the network is to compute with is in place of the parameters. */
    tr_status (*evaluate)(void *user, const struct tr_shared_evaluation *evaluation, int64_t first,
                          int64_t end, void *found);
    /* On the root: the result of one rank; each example once, in any order. */
    tr_status (*take)(void *user, const struct tr_shared_evaluation *evaluation, int64_t first, int64_t end,
                      const void *found);
    void *user;
};
/* Who evaluates on this rank; before a run. Local. */
void tr_strategy_set_evaluation_hooks(tr_strategy *strategy, const struct tr_evaluation_hooks *hooks);
/* Has all examples evaluated by all who compute, as they come to it; what one leaves behind who is lost,
   another does. The root alone, in a run, of an asynchronous strategy. TR_EUNSUPPORTED where the class
   cannot: then the root evaluates all by itself. */
tr_status tr_strategy_evaluate(tr_strategy *strategy, const struct tr_shared_evaluation *evaluation);
/* Whether the class can. Local. */
bool tr_strategy_shares_evaluations(const tr_strategy *strategy);
/* What ranks other than the root do in a run of an asynchronous strategy: work until the root ends the run.
   `*stop` is looked at now and then and hands `request` to the root once set. TR_OK at the end of the run.
 */
tr_status tr_strategy_run_worker(tr_strategy *strategy, const atomic_int *stop, int32_t request);
/* Takes over the state of another strategy of the same job and class that outlives, by which none of those
   who live works any more: parameters, moments and averages as they were when `step` steps were done,
   wherever in the next one the ranks were, also those who died. Between the creation of this strategy and its
   beginning; may be done again. Collective. TR_EPEER where what is needed died, too. */
tr_status tr_strategy_inherit(tr_strategy *strategy, tr_strategy *from, int64_t step);
/* Whether no more steps come, though the job has more: the log of a replay has ended. Local. */
bool tr_strategy_is_over(const tr_strategy *strategy);
/* The run is over; the root of an asynchronous strategy releases the others. */
tr_status tr_strategy_end(tr_strategy *strategy);
/* Sets what an observer sees of coming steps; all zeros: nothing. Local. Strategies with several passes or
   variables may show only some. */
void tr_strategy_observe(tr_strategy *strategy, enum tr_observer who, struct tr_strategy_observer observer);
/* Before the last checkpoint: what an asynchronous run has under way is finished, nothing new is begun, and
   the state is gathered. Nothing happens if synchronous. */
tr_status tr_strategy_drain(tr_strategy *strategy);
/* Brings what ranks have up to date in their shards only together in the root's variables: before a
   checkpoint, in a settled state. Nothing happens where ranks keep parts, see tr_strategy_collect(). */
tr_status tr_strategy_gather(tr_strategy *strategy);
/* The same for what the network computes with: parameters and moving averages. Of any strategy. */
tr_status tr_strategy_gather_parameters(tr_strategy *strategy);
/* Brings the moving averages, if the job keeps them, of what a rank has parameters of to every rank, for
   evaluations that all take part in. Synchronous strategies only. */
tr_status tr_strategy_gather_averages(tr_strategy *strategy);
/* What was gathered has been used; a rank that keeps a part of the variables gives the memory of the others
   back. Local. */
void tr_strategy_release(tr_strategy *strategy);
/* An arena of a class's own: laid out like the parameters, a part of the state that checkpoints carry and
   resumes bring back. All ranks know the same ones. */
#define TR_STRATEGY_ARENA_NAME 32
struct tr_strategy_arena {
    char name[TR_STRATEGY_ARENA_NAME]; /* "outer", "replica3.m" */
    /* It has numbers of the same parameters as this one, and begins as a copy of it; TR_ARENAS: of all that
       are learned, and it begins as zeros. */
    enum tr_arena like;
    float *values;            /* memory of the holder; NULL: another rank keeps it */
    const int64_t *shard;     /* [size + 1]: floats that are right on each rank; NULL: all on `rank` */
    int rank;                 /* that keeps it, where there are no shards */
    struct tr_staging memory; /* of the values, where this owns them */
    bool begun;               /* its values are there: set by who loads it, else as all connect */
};
/* Their number, and one of them. The same on all ranks, but for `values`. Local. */
int tr_strategy_arena_count(const tr_strategy *strategy);
struct tr_strategy_arena *tr_strategy_arena(tr_strategy *strategy, int index);
/* The parameter of a tensor of an optimizer's file that is of an arena of some class's own: "conv1.weights"
   of "outer.conv1.weights"; NULL: it is of none. Local. */
const char *tr_strategy_arena_parameter(const char *tensor);
/* Whether a checkpoint is written piece by piece: since no rank has all. The same on all ranks. */
bool tr_strategy_saves_pieces(const tr_strategy *strategy);
/* Of such a strategy: brings the floats [begin, end) of an arena, at most TR_STRATEGY_PIECE, to the root,
   where they are at *values then, borrowed until the next call; nothing on other ranks. Arena TR_ARENAS + i
   is number i of the class's own. Ranks that keep none of them return at once. */
#define TR_STRATEGY_PIECE ((int64_t)1 << 20)
tr_status tr_strategy_collect(tr_strategy *strategy, int arena, int64_t begin, int64_t end,
                              const float **values);
/* Puts the same values into the floats [begin, end) of an arena of the state, if there is one, and of all
   replicas of this rank, as far as it keeps some of them and no other rank fills the memory. Between steps;
   all ranks put the same, meet, and connect again. */
tr_status tr_strategy_put(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                          const float *values);
/* SHA-256 of the present parameters, see tr_model_hash(), for all ranks, in a settled state; the root's
   parameters alone if asynchronous, and then local. */
tr_status tr_strategy_hash(tr_strategy *strategy, char hex[TR_SHA256_TEXT]);
/* The steps by which an asynchronous run had gone on when it settled or its state was gathered, beyond those
 * that steps told of so far; they will not count them again. Then 0, and always 0 if synchronous. Local. */
int64_t tr_strategy_take_ahead(tr_strategy *strategy);
/* On the root of an asynchronous run: sessions and records that came since the log was last emptied, by the
   caller, who keeps them. NULL elsewhere. Local. */
struct tr_update_log *tr_strategy_updates(tr_strategy *strategy);
/* The root's bytes come to all ranks; nothing happens if asynchronous. */
tr_status tr_strategy_broadcast(tr_strategy *strategy, void *data, size_t bytes);
/* Names the first tensor of a step that is not finite, see tr_gradient_locate_nonfinite(); "gradient" where
 * this rank cannot tell. The root alone of asynchronous strategies. */
tr_status tr_strategy_locate_nonfinite(tr_strategy *strategy, int64_t step, char *name, size_t size);
/* What all ranks did, on the root; zeros elsewhere. Release with tr_strategy_statistics_release(). */
tr_status tr_strategy_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out);
void tr_strategy_statistics_release(struct tr_strategy_statistics *statistics);

static inline bool tr_strategy_is_root(const tr_comm *comm)
{
    return !comm || tr_comm_rank(comm) == 0;
}

#endif
