/* What a kind of strategy provides. To add one: a file or folder here, a line in strategy/table.c; the manual
 * and the tests enumerate the table.
 */
#ifndef TR_STRATEGY_CLASS_H
#define TR_STRATEGY_CLASS_H

#include "base/option.h"
#include "strategy/strategy.h"

struct tr_strategy_class {
    const char *name; /* the key in a model file */
    const char *help;
    const struct tr_option *options; /* all have fallbacks */
    int32_t option_count;
    size_t options_size;
    size_t size; /* of the strategy's own structure, which begins with struct tr_strategy */
    /* Whether the options make the strategy asynchronous; NULL: never. */
    bool (*asynchronous)(const void *options);
    /* Checks the options against the job, for `ranks` ranks. The caller adds file and line. */
    tr_status (*check)(const struct tr_job *job, const void *options, int ranks);
    /* Fills `variables`, unless `begin` does, and the rest; what was made is released by `destroy`, also
     * after a failure. */
    tr_status (*create)(tr_strategy *strategy);
    void (*destroy)(tr_strategy *strategy);
    /* Gives up messages before anything is released. False: some may still use memory of the strategy. NULL:
       none is under way after a run that went well, and others end with the communicator. */
    bool (*cancel)(tr_strategy *strategy);
    /* In the place of `destroy`, where messages may still use the memory, which then stays until the process
       ends: only ends threads that would outlive what was lent to the strategy, but for the gradient's. NULL:
       there are none. */
    void (*leave)(tr_strategy *strategy);
    /* The other slots are the functions of strategy/strategy.h; see there. */
    tr_status (*begin)(tr_strategy *strategy);
    void (*placement)(const tr_strategy *strategy, int rank, struct tr_placement *out);
    tr_status (*meet)(tr_strategy *strategy, int64_t step); /* NULL: a barrier */
    tr_status (*step)(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures);
    tr_status (*settle)(tr_strategy *strategy);          /* NULL: nothing is under way between steps */
    tr_status (*gather)(tr_strategy *strategy);          /* NULL: ranks keep parts, see below */
    tr_status (*gather_averages)(tr_strategy *strategy); /* NULL: they are there */
    /* All three for strategies whose ranks keep parts of the variables; else NULL. */
    tr_status (*gather_parameters)(tr_strategy *strategy);
    void (*release)(tr_strategy *strategy);
    tr_status (*bring)(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                       const float **values);
    /* NULL for strategies that are never asynchronous: */
    tr_status (*follow)(tr_strategy *strategy, const volatile sig_atomic_t *stop, int32_t wish);
    tr_status (*end)(tr_strategy *strategy);
    /* NULL: every rank sends its own figures, collectively. */
    tr_status (*statistics)(tr_strategy *strategy, struct tr_strategy_statistics *out);
    size_t (*memory)(const tr_strategy *strategy); /* NULL: variables and gradient */
    /* NULL: tr_gradient_blame() of the rank's gradient. */
    tr_status (*blame)(tr_strategy *strategy, int64_t step, char *name, size_t size);
    /* What a comparison of strategies tries: options as on a command line ("mode=async"), where {workers}
       stands for the number of workers; ends with NULL. NULL: the options as they are by default. */
    const char *const *variants;
    /* Synchronous, with an arithmetic of its own: the hash is not that of one process. */
    bool own_hash;
    /* How many ranks a run with these options has in which `workers` ranks compute; NULL: as many. */
    int (*ranks)(const void *options, int workers);
};

/* The head of every strategy's own structure. */
struct tr_strategy {
    const struct tr_strategy_class *class;
    void *options;     /* of class->options_size */
    tr_device *device; /* that computes */
    tr_device *holder; /* that holds the variables and updates them; often the same */
    const struct tr_job *job;
    tr_comm *comm;           /* NULL: alone */
    tr_comm *part;           /* a part of the ranks whose traffic counts, too; NULL: none */
    int rank, size;          /* 0 of 1 alone */
    int servers;             /* the last ranks, which update and compute no gradients; 0: all do both */
    tr_variables *variables; /* made by `create` or `begin`; released before `destroy` */
    tr_gradient *gradient;   /* made by `begin` where the rank computes some; released before `destroy` */
    struct tr_strategy_settings settings;
    struct tr_strategy_watch watcher[TR_WATCHERS];
    struct tr_strategy_watch own_watch, *watch; /* of all watchers; an inner strategy's is the outer one's */
    struct tr_rank_statistics done;             /* compute_seconds, contributions */
    int64_t ahead;                              /* see tr_strategy_take_ahead() */
};

/* All classes, ends with NULL; the first is the default. */
extern const struct tr_strategy_class *const tr_strategy_classes[];
extern const struct tr_strategy_class tr_strategy_all_reduce, tr_strategy_local_sgd,
    tr_strategy_parameter_server, tr_strategy_pipeline;

/* ---- for classes ---- */

/* Makes a strategy of another class, with default options, that does the work of `outer`, which lends it
   device, job and communicator: all but the two classes' creation and destruction is the inner one's.
   `servers` as in struct tr_strategy. Returned, destroy with tr_strategy_destroy() in the outer's `destroy`.
 */
tr_status tr_strategy_create_inner(const tr_strategy *outer, const struct tr_strategy_class *class,
                                   tr_device *device, int servers, tr_strategy **out);

/* Whether the whole gradient's norm is wanted in each step. */
bool tr_strategy_measures(const struct tr_job *job);
/* The same, and if so: measures the norm of `gradient`, a whole arena, and decides whether the step is left
   out. figures->bad_loss is set before. Every rank comes to the same. */
tr_status tr_strategy_measure(tr_strategy *strategy, const float *gradient, struct tr_step_figures *figures);
/* The second half of that, for classes that measure by themselves. */
tr_status tr_strategy_judge(tr_strategy *strategy, struct tr_step_figures *figures);
/* tr_gradient_step() with the time taken and stragglers' delays; only the number of examples where the rank
 * computes no gradient. */
tr_status tr_strategy_compute(tr_strategy *strategy, int64_t step, int64_t *examples);
/* The same for a gradient of the class's own. */
tr_status tr_strategy_compute_with(tr_strategy *strategy, tr_gradient *gradient, int64_t step,
                                   int64_t *examples);
/* Sleeps as a straggler does after `seconds` of work on `step`; for classes that do not use the above. */
void tr_strategy_delay(const tr_strategy *strategy, int64_t step, double seconds);
/* Memory of `bytes` bytes (0 allowed) that the ranks of a host share; *out is NULL where the device or the
   ranks cannot share memory. Collective. Returned, destroy with tr_window_destroy(). */
tr_status tr_strategy_window(tr_strategy *strategy, size_t bytes, tr_window **out);
/* The same for the ranks of a part. */
tr_status tr_strategy_window_of(tr_strategy *strategy, tr_comm *part, size_t bytes, tr_window **out);
/* The same with room for the bytes [begin, end) only, see tr_window_create_sparse(). */
tr_status tr_strategy_window_sparse(tr_strategy *strategy, tr_comm *part, size_t bytes, size_t begin,
                                    size_t end, tr_window **out);
/* Lets messages between the ranks move while this one computes, unless but words go between them: because
   `window`, which may be NULL, has what they exchange, and all are on one host. */
tr_status tr_strategy_keep_moving(tr_strategy *strategy, const tr_window *window);
/* Bytes of variables and gradient, which are all that some classes take. */
size_t tr_strategy_usual_memory(const tr_strategy *strategy);
/* Waits until all ranks are here. */
tr_status tr_strategy_barrier(tr_strategy *strategy);
/* Waits for an operation that was just started with `status`; local nothing. */
tr_status tr_strategy_wait(tr_strategy *strategy, tr_status status, tr_ticket *ticket);
/* Every rank's own figures come to all, into out->rank[size]; collective. */
tr_status tr_strategy_gather_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out);
/* All ranks learn whether one was poisoned and what they wish for: the end of a synchronous step. */
tr_status tr_strategy_exchange(tr_strategy *strategy, bool poisoned, int32_t wish,
                               struct tr_step_figures *figures);

#endif
