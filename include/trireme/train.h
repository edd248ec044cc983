/* Training: a trainer carries out the job of a model file, from its data to its checkpoints.
 *
 *     struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
 *     settings.model = "models/mnist-cnn.yaml";
 *     tr_trainer *trainer = NULL;
 *     tr_status status = tr_trainer_create(&settings, &trainer);
 *     if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
 *     tr_trainer_destroy(&trainer);
 *
 * A trainer is used by one thread at a time, except for tr_trainer_stop(). It belongs to the process that
 * created it. In a child of fork(), which lacks its threads, functions that need them return
 * TR_EUNSUPPORTED, and tr_trainer_destroy() only forgets it. The child may create new trainers.
 */
#ifndef TRIREME_TRAIN_H
#define TRIREME_TRAIN_H

#include "trireme/data.h"
#include "trireme/metrics.h"
#include "trireme/predict.h"
#include "trireme/profile.h"
#include "trireme/sized.h"
#include "trireme/state.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_trainer tr_trainer;

/* A stop request from outside: another thread, a signal handler, an event loop. Given to
   tr_trainer_create() as `stop` of the settings, it ends the creation and every run of that trainer, like
   tr_trainer_stop(), as long as it is set. One may serve several trainers. */
typedef struct tr_stop tr_stop;
/* Not set. Returned, destroy with tr_stop_destroy(), after the trainers that use it. TR_ENOMEM. Any
 * thread.
 */
TR_API tr_status tr_stop_create(tr_stop **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_stop_destroy(tr_stop **stop);
/* Sets it (not 0), or clears it. Any thread, and signal handlers. */
TR_API void tr_stop_set(tr_stop *stop, int asked);

/* Structures that a function fills begin with their size, as settings do: initialize with their INIT.
   Members may be appended in later versions; a program that was built with fewer gets those, and `size`
   becomes the number of filled bytes. TR_EINVAL without a size. Structures in arrays keep their members. */

/* The job: a model, its data and its training. Initialize with TR_TRAIN_SETTINGS_INIT, which fills `size`
   and the defaults; strings are borrowed for the call that takes the settings. */
struct tr_train_settings {
    size_t size;            /* sizeof(struct tr_train_settings), for later versions */
    const char *model;      /* path of a model file; NULL with `resume`: the checkpoint's own */
    const char *const *set; /* [set_count] overrides, "optimizer.rate=1e-3" */
    int set_count;          /* of `set` */
    const char *device;     /* "cpu", "ref" or "opencl", see tr_devices(); "opencl:1": the second of them;
                               "cpu,opencl": ranks take them in turn */
    int threads;            /* 0: one per core available to the process */
    const char *isa;        /* NULL: the best of the machine; "avx512", "avx2", "neon", "plain", "sse2" */
    const char *out;        /* directory of checkpoints; NULL: none are written */
    const char *resume;     /* a checkpoint, or a directory of checkpoints: the newest good one; NULL:
                               start anew */
    bool resume_changed;    /* resume although settings differ from the checkpoint's: the hash will
                               differ, too */
    bool has_seed;          /* `seed` is set */
    uint64_t seed;          /* in place of the model file's, with has_seed */
    int64_t steps;          /* in place of the model file's steps or epochs, if > 0; see `epochs` */
    const char *transport;  /* NULL or "none": only this process; "mpi": one of the processes that mpirun or
                               SLURM started, which share the job; "local:" and the value of the variable
                               TRIREME_LOCAL: one of those that `trireme launch` started on this host, or a
                               program by trireme/launch.h */
    const char *strategy;   /* how they share it, in place of the model file's `strategy:`: a name, or a name
                               with options, "parameter-server,mode=async"; NULL: as the file says */
    const char *slow;       /* deliberate stragglers: "1:5,3:2" makes rank 1 compute 5 times slower than it
                               can; NULL: none */
    uint64_t delay_seed;    /* seed of random delays in all processes; 0: no delays */
    double timeout;         /* seconds without a sign of life after which another process counts as lost; 0:
                               60 */
    double patience;        /* seconds to wait for living processes; 0: 1800, or the time-out if longer */
    const char *trace;      /* file for a timeline of all processes, for Perfetto; NULL: none */
    int64_t trace_first, trace_steps; /* number of steps after trace_first in it, at most trace_steps */
    bool profile;                     /* collect the data of tr_trainer_profile() */
    const char
        *tensorboard;   /* directory where tr_trainer_run() writes event files for TensorBoard; NULL: none */
    int64_t histograms; /* steps between histograms of parameters, gradients and activations there; 0:
                           never */
    int64_t record_digests;    /* steps between digests that are kept in `out`, for `trireme diff`; 0: none.
                                  Microbatches are then computed one at a time, which takes longer and changes
                                  no bit */
    const char *parameters_on; /* device that holds the parameters and updates them; NULL: `device` */
    bool continues;            /* resume from the newest good checkpoint in `out`, if there is one, whatever
                                  `resume` is: for jobs that are started again */
    const char *journal;       /* directory where tr_trainer_run() keeps a journal of the run, journal.jsonl,
                                  from which tr_report() and `trireme report` make pages; NULL: `out`, if set;
                                  "": none is kept */
    bool bind; /* tie the calling thread, and with it all computing threads, to a separate part of the
                  host's processors for each process; not if processes or their threads outnumber
                  processors */
    const char
        *data_cache; /* directory where unpacked data are kept for the next run, see tr_data_cache_list()
                        of trireme/data.h; NULL: none. Problems with it are only warnings */
    int64_t data_cache_bytes; /* total size of entries there; 0: 10 GiB */
    bool no_memory_check;     /* begin even if the run will take more memory than is free: else TR_ENOMEM */
    const char *system_root;  /* directory of proc/ and sys/, which report memory; NULL: "" */
    int64_t epochs;   /* in place of the model file's steps or epochs, if > 0; only one of the two may be
                         given */
    const char *from; /* a checkpoint, or a directory of them, of a run of another job: parameters with
                         equal names and shapes begin with its values (moving averages if it keeps them),
                         the others by the model file. Not with `resume`. Of several processes the first
                         one's counts, and the others must set one, too; NULL: none */
    const char *program_cache; /* directory where programs of devices are kept for the next run, made when
                                  needed; NULL: none are kept. Problems with it only cost time */
    bool outlives;         /* when one of the processes dies, the others continue from the last step, to the
                              same weights; if it was the first, the next one reports and saves. For processes
                              of one host under `allreduce`, without traces, profiles and digests;
                              asynchronous ones continue in any case, unless the first one dies */
    const char *shares;    /* how the microbatches of a step are divided among the computing processes, if the
                              strategy lets all of them compute some of each: "equal"; "auto", by the speed
                              measured during the run; or a speed for each of them, "3,1,1". Changes no bit.
                              NULL: "equal" */
    int replicas_of_state; /* with `outlives`, if processes share no memory: 1 for a copy of the moments
                              and averages of each on another one, for which both wait; 0: none */
    const char *model_text;             /* the model file itself, instead of `model`: YAML; NULL: `model` */
    size_t model_length;                /* its bytes; 0: up to its NUL */
    const char *model_name;             /* its name in messages, as in "NAME:3:5"; NULL: "model" */
    const char *directory;              /* start of relative paths in it; NULL: the current directory */
    const struct tr_named_source *data; /* [data_count] from the program's memory, see trireme/arrays.h; with
                                           the names "train", "validation" and "test" they are these sets if
                                           the model file names none. Sources and names are borrowed until the
                                           trainer is destroyed. Each process of a job gives separate sources,
                                           with equal contents */
    int data_count;                     /* of `data` */
    struct tr_run_state state; /* resumes from a checkpoint in memory, instead of `resume`; of several
                                  processes the first one's counts, and the others receive it from there */
    tr_stop *stop;             /* ends the creation and runs of this trainer, see above; borrowed until it is
                                  destroyed. The creation checks it between its parts, before each data set is
                                  opened, and while it waits for other processes: TR_EINTERRUPTED, and no
                                  files remain. The others get TR_EPEER with this message. NULL: none */
    struct tr_run_state from_state; /* as `from`, but a checkpoint in memory */
    const char *replay; /* directory of an asynchronous run, or its log: the same updates are computed again
                           in their order, to the same weights, by this process or several, whatever
                           `strategy` is. Without a model file the run's own is taken, from its newest
                           checkpoint. Begins before the first step; not with `resume`. NULL: no replay */
    bool receipt; /* keep a receipt of the run, as train.receipt of the model file does; a run that resumes
                     from a checkpoint with a receipt keeps it in any case */
    const char *schedule; /* file with such a log as text, written by hand or by `trireme log`: this job is
                             trained in its order of updates. NULL: none */
    uint64_t simulate_delays; /* the order of updates follows from random delays of simulate_workers
                                 workers under the job's asynchronous strategy, with `slow` by their
                                 numbers, the same on every machine; 0: not */
    int simulate_workers;     /* 0: 4 */
    const char *teacher; /* run or checkpoint in place of the model's distill.teacher; NULL: the model's */
};
#ifdef __cplusplus
inline tr_train_settings tr_train_settings_init()
{
    tr_train_settings value = tr_sized<tr_train_settings>();
    value.device = "cpu";
    value.trace_steps = 100;
    return value;
}
#define TR_TRAIN_SETTINGS_INIT tr_train_settings_init()
#else
#define TR_TRAIN_SETTINGS_INIT                                                                               \
    {                                                                                                        \
        .size = sizeof(struct tr_train_settings), .device = "cpu", .trace_steps = 100                        \
    }
#endif

/* The training that a model file describes (with only `resume`, the one of the checkpoint). */
struct tr_train_plan {
    size_t size;          /* sizeof(struct tr_train_plan) */
    const char *strategy; /* "allreduce"; static storage */
    bool asynchronous;    /* processes other than the first may be lost while the job continues */
};
#define TR_TRAIN_PLAN_INIT TR_SIZED_INIT(struct tr_train_plan)
/* Reads the model file, applies the overrides and checks all that does not need data, which are not
   opened. Errors as below. */
TR_API tr_status tr_train_plan(const struct tr_train_settings *settings, struct tr_train_plan *out);

/* Reads the model file, opens the data, builds the network, and initializes or restores it. With a
   transport, all processes make this call and the later ones together. TR_EPEER: one of the others is
   missing. Errors are those of every part, with file, line and names. Returned, destroy with
   tr_trainer_destroy(). */
TR_API tr_status tr_trainer_create(const struct tr_train_settings *settings, tr_trainer **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_trainer_destroy(tr_trainer **trainer);

/* Facts about a trainer; strings are borrowed until it is destroyed. */
struct tr_train_info {
    size_t size;                 /* sizeof(struct tr_train_info) */
    const char *name;            /* of the job, from the model file */
    const char *model;           /* its path, "" if the checkpoint's own is used */
    const char *device;          /* "cpu (avx512, 2 threads)" */
    const char *resumed;         /* path of the checkpoint that was loaded, or "" */
    const char *resume_warnings; /* checkpoints that were skipped, and why; or "" */
    const char *settings;        /* settings that decide the weights, in YAML */
    const char *digest;          /* SHA-256 of them */
    const char *tensorboard;     /* directory of event files, or "" */
    uint64_t seed;               /* from which initial values, order and dropout follow */
    int64_t parameters;          /* numbers that the network learns, without running statistics */
    int64_t kept;                /* of these, the number that this process keeps */
    int64_t memory;              /* bytes of device memory of this process */
    int64_t host_memory; /* bytes of host memory of all its processes for parameters, moments, passes */
    int64_t data_memory; /* bytes of unpacked data, which they share */
    int64_t free_memory; /* bytes that were free for both; INT64_MAX: unknown */
    int host_processes;  /* of the job, on this host */
    int64_t train_examples, test_examples; /* test_examples is 0 without test data */
    int64_t batch, microbatches;           /* examples of a step, and the parts in which it is computed */
    int64_t steps, steps_per_epoch;        /* to do in all, and in one pass over the training data */
    int64_t step;                          /* steps done */
    double seconds;                        /* of the steps of the last run, without evaluation and saving */
    /* For a job that keeps the best evaluation of `evaluate_every`: steps done then (-1: none), its
       figures, and the data ("validation"). Its weights are in `out`/checkpoint-best. */
    int64_t best_step;
    double best_loss, best_accuracy; /* its figures */
    const char *best_set;            /* its data */
    bool classification;             /* accuracies are meaningful */
    double label_smoothing;          /* in the losses of steps, not of evaluations */
    int64_t log_every;               /* steps between reports; 0: none */
    int rank, ranks; /* rank of this process, and number of all that share the job; 0 of 1 alone. Only rank
                        0 calls a listener and saves. Ranks that continue without others are numbered anew */
    const char *strategy;                     /* "allreduce" */
    const char *strategy_options;             /* all of them, as JSON */
    const char *role;                         /* of this process: "worker", "server", "stage" */
    int64_t first_microbatch, end_microbatch; /* this process's part of each step: [first, end) */
    const char *start;         /* sources of parameters that replace initial values, one per line; or "" */
    double tokens_per_example; /* if losses are of tokens: labels of a training example, on average; else
                                  NaN */
    const char *monitor;       /* the figure that decides which evaluation is better: "loss", "f1" */
    double best_monitor;       /* that figure of the best evaluation; NaN: none */
};
#define TR_TRAIN_INFO_INIT TR_SIZED_INIT(struct tr_train_info)
/* The current facts about a trainer. TR_EINVAL without a size; errors of data that are opened only now.
   Local. */
TR_API tr_status tr_trainer_info(const tr_trainer *trainer, struct tr_train_info *info);

/* The role of a process in a job; strings are borrowed until the trainer is destroyed. */
struct tr_train_placement {
    size_t size;                              /* sizeof(struct tr_train_placement) */
    const char *host;                         /* on which it runs */
    const char *role;                         /* "worker", "server", "stage" */
    const char *device;                       /* that computes: "cpu (avx512, 2 threads)" */
    const char *holder;                       /* device that holds the parameters and updates them */
    int threads;                              /* that compute */
    int64_t memory;                           /* bytes of device memory; shared memory counts for each */
    int64_t first_microbatch, end_microbatch; /* its part of each step: [first, end) */
    const char *first_layer, *last_layer;     /* names of those that it computes; "" for none */
    int64_t parameters;                       /* numbers of the network that it keeps */
    int64_t updates;                          /* of these, those that it updates */
};
#define TR_TRAIN_PLACEMENT_INIT TR_SIZED_INIT(struct tr_train_placement)
/* Describes any process of the job, `rank` from 0 to ranks - 1. */
TR_API tr_status tr_trainer_placement(const tr_trainer *trainer, int rank,
                                      struct tr_train_placement *placement);

/* The kind of an event. */
enum tr_train_event_kind {
    TR_EVENT_STEP,       /* a step to be reported, see `log_every` of the model file */
    TR_EVENT_PROGRESS,   /* a few times a second, for progress bars; figures of the last step */
    TR_EVENT_EVALUATION, /* a data set was evaluated: `name`, loss, accuracy, examples */
    TR_EVENT_CHECKPOINT, /* a checkpoint was written: `name` is its path */
    TR_EVENT_WARNING,    /* `name` is a problem after which the run continues (failed save, skipped step) */
    TR_EVENT_END,        /* the run is over: `hash` */
    TR_EVENT_SHARES      /* processes compute unequal or changed parts of the microbatches: `name` describes
                            them */
};

/* An event of a run. Members that the kind does not name are 0, NaN or "". */
struct tr_train_event {
    size_t size;                   /* sizeof(struct tr_train_event); for a listener that of the library's */
    enum tr_train_event_kind kind; /* its kind */
    int64_t step;                  /* steps done */
    int64_t steps;                 /* to do in all */
    double epoch;                  /* epochs done, with fraction */
    double loss;                   /* mean over the global batch of this step, with label smoothing if the job
                                      has it, or over the evaluated set, always without */
    double accuracy;               /* fraction of correct classes, 0..1, likewise */
    double rate;                   /* learning rate of the step */
    double gradient_norm;          /* if clipping by norm computed it, else NaN */
    int64_t examples;              /* in this step, or evaluated */
    double seconds;                /* of training since the run began, without evaluation and saving */
    double examples_per_second;    /* since the previous report of the same kind */
    const char *name;              /* borrowed for the call; "" if it has no meaning */
    const char *hash;              /* of the parameters, for END and CHECKPOINT; else "" */
    bool best;                     /* EVALUATION: better than all before, its weights are kept */
    const struct tr_metrics *metrics; /* EVALUATION: the other metrics, borrowed until the next one; NULL
                                         for none */
    double perplexity;                /* exp(loss) if losses are of tokens; else NaN */
    double tokens_per_second; /* STEP and PROGRESS: examples_per_second times tokens_per_example of the info;
                                 else NaN */
};
#define TR_TRAIN_EVENT_INIT TR_SIZED_INIT(struct tr_train_event)

/* Called for each event, on the thread that runs the trainer. Non-zero ends the run as tr_trainer_stop()
 * does.
 */
typedef int (*tr_train_listener)(void *user, const struct tr_train_event *event);

/* Whether this process reports the progress of the job: it is the first living one. */
TR_API bool tr_trainer_is_reporter(const tr_trainer *trainer);

/* Notes the command line of the run for the journal that the next tr_trainer_run() begins; the report
   shows it as the way to repeat the run. `command` is borrowed for the call. TR_ENOMEM. */
TR_API tr_status tr_trainer_set_command(tr_trainer *trainer, const char *command);

/* Trains until all steps are done, an early stop holds, or tr_trainer_stop() was called: then the step is
   finished, a checkpoint is written if there is an output directory, and TR_EINTERRUPTED is returned.
   `listener` may be NULL. TR_ENONFINITE names step and first bad tensor; the last good checkpoint stays. A
   failed save is a warning, but the last one's failure is returned. */
TR_API tr_status tr_trainer_run(tr_trainer *trainer, tr_train_listener listener, void *user);
/* One step; its figures go to *event (may be NULL), whose kind is TR_EVENT_STEP. TR_EINVAL when all steps
 * are done.
 */
TR_API tr_status tr_trainer_step(tr_trainer *trainer, struct tr_train_event *event);
/* Asks tr_trainer_run() to end after the current step. Any thread, and signal handlers. */
TR_API void tr_trainer_stop(tr_trainer *trainer);

/* The activity of one process in a run. */
struct tr_train_rank {
    int64_t bytes_sent, bytes_received; /* in messages */
    int64_t bytes_shared;               /* read from memory that other processes of the host wrote */
    double wait_seconds;                /* for the others */
    double compute_seconds;             /* of gradients */
    int64_t contributions;              /* gradients that it computed; if asynchronous, only applied ones */
};

/* The activity of all processes in a run. Begin with TR_TRAIN_STATISTICS_INIT. */
struct tr_train_statistics {
    size_t size;                      /* sizeof(struct tr_train_statistics) */
    int ranks;                        /* processes that share the job */
    const struct tr_train_rank *rank; /* [ranks] */
    int64_t steps;                    /* of the run */
    bool asynchronous;                /* the following members are set */
    const int64_t *staleness; /* [staleness_bins]: gradients by the number of updates that they missed; the
                                 last bin takes the rest */
    int staleness_bins;       /* of `staleness` */
    int64_t dropped;          /* gradients that came too late */
};
#define TR_TRAIN_STATISTICS_INIT TR_SIZED_INIT(struct tr_train_statistics)
/* The activity of all processes in the last run that ended well or was stopped, on rank 0; elsewhere the
   figures are zero or the same. Borrowed until the next run or the end of the trainer. TR_EINVAL before
   the end of a run. */
TR_API tr_status tr_trainer_statistics(const tr_trainer *trainer, struct tr_train_statistics *out);

/* Evaluates on "train", "test" or "validation" with the current weights, or their moving averages if the
   job keeps them. The figures go to *event, whose kind is TR_EVENT_EVALUATION. Of several processes each
   computes a part, as in training, and all get the figures: all call it, outside of tr_trainer_run().
   Under asynchronous strategies only the first process calls it, after a run. TR_ENOTFOUND for data that
   the job lacks. */
TR_API tr_status tr_trainer_evaluate(tr_trainer *trainer, const char *set, struct tr_train_event *event);
/* Writes a checkpoint to the output directory, unless the newest one there has this state already, as
   after a run that was stopped. TR_EINVAL without an output directory. `path` (may be NULL) receives its
   path on the first process and NULL on the others, freed with tr_text_free() of trireme/data.h. All
   processes of a job call it, between steps. */
TR_API tr_status tr_trainer_save(tr_trainer *trainer, char **path);
/* Writes a checkpoint as the directory `path`, which must not exist; it is written under another name and
   renamed when complete. The output directory is not used. `path` is borrowed for the call. TR_EIO,
   TR_ENOMEM, TR_ENONFINITE. All processes of a job call it, between steps; the first one writes. */
TR_API tr_status tr_trainer_save_at(tr_trainer *trainer, const char *path);
/* The same into memory: *bytes [*size] is returned on the first process, free with tr_state_free(); the
   others get NULL and 0. TR_ENOMEM, TR_ENONFINITE. */
TR_API tr_status tr_trainer_save_state(tr_trainer *trainer, void **bytes, size_t *size);
/* The same piece by piece to a function, which the first process calls. TR_EIO if the function ended it. */
TR_API tr_status tr_trainer_save_stream(tr_trainer *trainer, tr_run_state_writer write, void *user);
/* A predictor of the current parameters, or of their moving averages if the settings ask for these and the
   job keeps them, without a checkpoint. It is independent of the trainer, and may outlive it.
   `checkpoint`, `best` and `state` of the settings are ignored. All processes of a job call it, between
   steps; the first one gets the predictor, the others NULL. Returned, destroy with tr_predictor_destroy().
   Errors as tr_predictor_create(). */
TR_API tr_status tr_trainer_predictor(tr_trainer *trainer, const struct tr_predict_settings *settings,
                                      tr_predictor **out);
/* The learning rate of the next step. Local. */
TR_API tr_status tr_trainer_rate(const tr_trainer *trainer, double *rate);
/* Sets the learning rate from the next step on instead of the schedule's, on all processes alike; NaN: the
   schedule's rate applies again. It is part of the state: checkpoints keep it, and runs that resume from
   one have it. The run then ends with another hash than that of its job. Between steps all processes of a
   job call it, and the first one's value counts. A listener may call it, too: then the rate holds after
   the next step, with one process or many. TR_EINVAL below 0 or beyond a float; TR_EUNSUPPORTED for an
   asynchronous strategy. */
TR_API tr_status tr_trainer_set_rate(tr_trainer *trainer, double rate);
/* SHA-256 over the parameters as 64 hexadecimal digits and a NUL: equal runs have equal hashes. If
   processes keep parts of the parameters, it is known at the end of a run and, on the first one, after
   saving; else TR_EINVAL. */
TR_API tr_status tr_trainer_hash(tr_trainer *trainer, char hex[65]);
#define TR_PARAMETER_DIMENSIONS 4
/* A parameter of the network, which it learns or, like running statistics, keeps. */
struct tr_parameter_info {
    size_t size;                            /* sizeof(struct tr_parameter_info) */
    const char *name;                       /* "conv1.weights"; borrowed until the trainer is destroyed */
    int64_t count;                          /* floats */
    int32_t dimensions;                     /* of `shape` */
    int64_t shape[TR_PARAMETER_DIMENSIONS]; /* the last dimension is closest in memory */
};
#define TR_PARAMETER_INFO_INIT TR_SIZED_INIT(struct tr_parameter_info)
/* The number of parameters, and parameter `index`, from 0, in the order of the layers. TR_ENOTFOUND after
   the last one. Local. */
TR_API int32_t tr_trainer_parameter_count(const tr_trainer *trainer);
TR_API tr_status tr_trainer_parameter_at(const tr_trainer *trainer, int32_t index,
                                         struct tr_parameter_info *info);
/* Gives a parameter, and its moving average, other values from the next step on; moments stay. The run
   then ends with another hash than that of its job. All processes of a job call it between steps, with the
   same name and values. TR_ENOTFOUND, TR_EMISMATCH if count is not its size or processes set different
   values; then nothing is changed. TR_EUNSUPPORTED if processes share a job by an asynchronous strategy,
   and with `parameters_on`. `values` [count] is borrowed for the call. */
TR_API tr_status tr_trainer_set_parameter(tr_trainer *trainer, const char *name, const float *values,
                                          int64_t count);
/* Copies a parameter by name ("conv1.weights") into `values`, which has room for `count` floats.
   TR_ENOTFOUND, also where another process keeps it; TR_EMISMATCH when count is not its size. */
TR_API tr_status tr_trainer_parameter(tr_trainer *trainer, const char *name, float *values, int64_t count);

/* The profile of a finished run, with `profile` set; borrowed until the trainer is destroyed. On the first
   process only. TR_EINVAL without one. */
TR_API tr_status tr_trainer_profile(const tr_trainer *trainer, const struct tr_train_profile **profile);

#ifdef __cplusplus
}
#endif
#endif
