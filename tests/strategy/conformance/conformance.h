/* What every strategy must do, whatever its hash: the checks of test_conformance.c.
 *
 * A candidate is a class with the options of one of its variants. Checks say whether it does what is asked,
 * and else complain; so that a class that does not can be shown to be found out.
 */
#ifndef TESTS_STRATEGY_CONFORMANCE_H
#define TESTS_STRATEGY_CONFORMANCE_H

#include "support/ranks.h"

#include "strategy/class.h"

#define CONFORMANCE_RANKS   4
#define CONFORMANCE_WORKERS "4" /* for {workers} in variants */
#define CONFORMANCE_STEPS   16

/* Where ranks compute, and which of them. What they are held to is one process on the processor, always. */
struct conformance_settings {
    const char *device, *program_cache; /* NULL: the processor */
    const char *only;                   /* this class alone, or NULL: all */
    const char *slow;                   /* a straggler that nobody overlooks; it takes its time */
    int children;                       /* processes that share the refusals of memory */
    int every;                          /* one of so many allocations is refused */
};
extern struct conformance_settings conformance;
/* Told by devices of the test's own of memory that they took; then what the library allocates on the host,
   much of it for a moment, is not counted. */
void conformance_took(size_t bytes);

/* ---- candidates ---- */

struct replay;

/* What must be known about a class beside its table: how its run is replayed if its hash is its own. */
struct conformance_data {
    const char *name; /* of the class */
    /* The end of a round of replicas that are trained apart, in plain loops: `steps` steps are done. NULL:
       the hash is that of one process, or the class is asynchronous, and its updates are replayed in the
       order in which a server makes them. */
    void (*meet)(struct replay *replay, int64_t steps);
};
extern const struct conformance_data conformance_data[];
/* The data of a class, or NULL. */
const struct conformance_data *conformance_data_of(const char *name);

struct candidate {
    const struct tr_strategy_class *class;
    const struct conformance_data *data;
    char strategy[160]; /* as on a command line */
    bool asynchronous;
    int servers;
    bool legal[CONFORMANCE_RANKS + 1]; /* numbers of ranks */
    char complaint[1200];              /* of the last check that failed */
};

/* Makes the data and the model file of the tiny job in a scratch directory, for all checks; a fixture. */
int conformance_set_up(void **state);
int conformance_tear_down(void **state);
/* The number of candidates of a class, and one of them. */
int conformance_variants(const struct tr_strategy_class *class);
void conformance_candidate(const struct tr_strategy_class *class, int variant, struct candidate *out);
/* Notes a complaint; returns false. */
bool complain(struct candidate *candidate, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- runs of the tiny job ---- */

struct order {
    const char *strategy; /* NULL: one process, without ranks */
    int ranks;
    bool apart;
    const char *set[3]; /* overrides, NULL at the end */
    int64_t steps;      /* 0: CONFORMANCE_STEPS */
    const char *out, *resume;
    const char *shares; /* of microbatches; NULL: equal ones */
    const char *slow;   /* stragglers; NULL: none */
    int stopper;        /* this rank asks for a stop before the first step; -1: none */
    bool recorded;      /* the first server notes the updates that it makes */
};

#define RESULT_FLOATS  1024 /* of an arena of the tiny job, at most */
#define RESULT_UPDATES 512

/* What ranks leave for the test, in memory that they share with it. */
struct left_behind {
    bool has_averages;
    float parameters[RESULT_FLOATS], averages[RESULT_FLOATS]; /* arenas of rank 0 in the end */
    int64_t update_count;
    float update[RESULT_UPDATES][RESULT_FLOATS]; /* gradients that an asynchronous server applied, in turn */
};

struct result {
    struct rank rank[RANKS]; /* outcomes; of one process the first */
    int ranks;
    struct left_behind *left;
};

/* A trainer without ranks for the job of an order. */
tr_trainer *order_trainer(const struct order *order, struct job *job);
/* The job of an order for run_ranks_by(): settings live in `job`. */
void order_job(const struct order *order, struct job *job);
/* `result` is released by run_release(). */
void run_order(const struct order *order, struct result *result);
void run_release(struct result *result);
/* Complains about the first rank whose outcome is not `expected`; of an asynchronous candidate only the root
   counts. */
bool expect_status(struct candidate *candidate, const struct result *result, tr_status expected,
                   const char *how);

/* What a run is to show: overrides, and what follows. */
struct feature {
    const char *name;
    const char *set[2];
    tr_status status; /* of the run */
    bool skips;       /* some steps are left out */
    bool changes;     /* the parameters are others than those of the first feature, which is plain */
};
extern const struct feature features[];
extern const int feature_count;
/* The result of one process, made once. */
const struct result *alone(int feature);

/* ---- replays: plain loops over all replicas, in double precision (replay.c) ---- */

struct replay {
    int64_t floats, replicas;
    double rate, momentum; /* of the optimizer */
    double **w, **m, **ema;
    double *start;       /* the initial parameters */
    const void *options; /* of the class */
    double *outer,
        *last;     /* for meetings: momentum and parameters of the last one; zero, and the initial ones */
    bool apart;    /* the state is `last`, with the means of the moving averages; else replica 0's */
    int64_t steps; /* of the training */
    int64_t skipped;
};

/* Trains as many replicas as the candidate's options say on their parts of each batch. Release with
   replay_release(). */
void replay_replicas(const struct candidate *candidate, const struct feature *feature, struct replay *out);
/* Applies the updates that a server recorded, one after another. */
void replay_updates(const struct feature *feature, const struct result *result, struct replay *out);
void replay_release(struct replay *replay);
/* Whether the state of the replay ends where the run did. */
bool expect_near(struct candidate *candidate, const struct replay *replay, const struct result *result,
                 const char *how);

/* ---- checks; all take any candidate ---- */

bool repeats_itself(struct candidate *candidate);
/* Of a feature: clipping, skipping, stopping for what is not finite, L2, averages, schedules. */
bool takes_effect(struct candidate *candidate, const struct feature *feature);
bool resumes(struct candidate *candidate);
bool stops_on_request(struct candidate *candidate);
bool evaluates(struct candidate *candidate);
/* Microbatches are shared as is asked for, with the same hash; or the strategy refuses, by its name. */
bool shares(struct candidate *candidate);
bool hears_requests(struct candidate *candidate);
/* faults.c */
bool survives_failing_allocations(struct candidate *candidate);
bool announces_memory(struct candidate *candidate);
bool names_a_dead_rank(struct candidate *candidate);

/* ---- all of it ---- */

/* Runs every check on every strategy of the table, with every variant, on 1 to 4 ranks; returns how many
 * failed. */
int conformance_run(const char *name);

#endif
