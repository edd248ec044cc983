/* The parts of trireme compare: the list of runs (combinations.c), the runs (run.c), the best one (judge.c),
 * and the output (table.c, files.c).
 */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli/terminal/screen.h"
#include "cli/train/statistics.h"

#include "base/options/option.h"

/* A combination of strategy and number of workers. */
struct cli_compare_case {
    char *strategy;     /* as for --strategy; owned */
    int workers;        /* processes that compute */
    int ranks, threads; /* processes in all, and threads of each */
    bool alone;         /* one process, which the others are compared with */
    bool asynchronous;  /* its hash is that of no other run */
    bool own_hash;      /* nor is this one's, though it repeats itself */
    char *left_out;     /* why it is not run, or NULL; owned */
};

struct cli_compare_plan {
    struct cli_compare_case *cases; /* the first runs alone */
    int count;
    int64_t evaluate_every; /* steps, where a target is to be met */
    int width;              /* columns that rows may take; 0: as many as they need */
};

/* The comparison that is asked for. Strings and lists are borrowed. */
struct cli_compare_orders {
    const char *model;
    const struct tr_string_list *set;
    const char *strategies; /* "all", or names, some with options: "allreduce,local-sgd,every=4" */
    const struct tr_int_list *workers;
    double until;          /* accuracy that ends a run; 0: none */
    double budget;         /* seconds that a run may take; 0: as long as it takes */
    int64_t steps;         /* of a run; 0: as the model file says */
    int64_t seed;          /* -1: as the model file says */
    int32_t threads;       /* to share out; 0: as many as processors */
    const char *directory; /* directory for what the runs write */
    const char *hosts;     /* for runs of several processes, as `trireme launch` takes them; NULL: this one */
};

/* Steps of a job that is looked at, not run. */
#define CLI_COMPARE_MANY TR_OPTION_WHOLE

/* Fills `plan`, release with cli_compare_plan_release(), also after a failure. Errors are those of reading
   the model file; TR_EINVAL for strategies that there are not. */
tr_status cli_compare_plan(const struct cli_compare_orders *orders, struct cli_compare_plan *plan);
void cli_compare_plan_release(struct cli_compare_plan *plan);

enum cli_compare_end {
    CLI_COMPARE_NOT_RUN,
    CLI_COMPARE_DONE,
    CLI_COMPARE_OUT_OF_TIME, /* the budget ended it */
    CLI_COMPARE_STOPPED,     /* the user did */
    CLI_COMPARE_FAILED
};

struct cli_compare_result {
    enum cli_compare_end end;
    char failure[512]; /* the run's last word, if it failed; or what is wrong about it */
    bool refused;      /* it failed by the model file or the data, and would under any strategy */
    int64_t step;
    double seconds, examples_per_second;
    double steady_examples_per_second;    /* without the first step, which finds memory and caches cold */
    double accuracy;                      /* at the end; NaN: unknown, or not a classification */
    double loss;                          /* on the same data; NaN: unknown */
    double target_seconds, target_epochs; /* until the target was met; NaN: it was not */
    char hash[65];
    bool has_statistics;
    struct cli_statistics statistics;
    int64_t dropped;
    double again; /* examples per second of the same run once all others were done; 0: not measured */
};

/* Runs a case as one or several processes of their own, and shows on the screen how it goes. Returns TR_OK
   whatever became of the run: that is in the result. TR_EIO, TR_ENOMEM where none could be started. */
tr_status cli_compare_run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_case *one, struct cli_screen *screen,
                          struct cli_compare_result *result);

/* ---- what is said ---- */

/* Whether the hash must be that of the process alone, and whether it is. */
enum cli_compare_hash { CLI_HASH_OTHER, CLI_HASH_EQUAL, CLI_HASH_NOT_EQUAL };
enum cli_compare_hash cli_compare_hash(const struct cli_compare_plan *plan,
                                       const struct cli_compare_result *results, int index);
/* Whether there are figures: it went to its end, or as far as the budget let it. */
bool cli_compare_has_run(const struct cli_compare_result *result);
/* Whether a result counts in place of an earlier one of the same case: the better one does, and a failure
   before any other. */
bool cli_compare_counts(const struct cli_compare_orders *orders, const struct cli_compare_result *before,
                        const struct cli_compare_result *now);
/* Times as fast as the process alone; NaN: unknown. */
double cli_compare_speedup(const struct cli_compare_result *results, int index);
/* The run that met the target first, or without one the fastest; -1: there is none. */
int cli_compare_best(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                     const struct cli_compare_result *results);

/* Whether the figures of a run cannot be, so that the machine must have been busy. */
bool cli_compare_doubtful(const struct cli_compare_plan *plan, const struct cli_compare_result *results,
                          int index);

/* Lines for people, without line feeds; each is returned, free with tr_free(), NULL when memory fails. */
char *cli_compare_head(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan);
char *cli_compare_row(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                      const struct cli_compare_result *results, int index);
char *cli_compare_verdict(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_result *results);

/* The same for programs. */
tr_status cli_compare_csv(const struct cli_compare_plan *plan, const struct cli_compare_result *results,
                          char **out);
tr_status cli_compare_json(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                           const struct cli_compare_result *results, char **out);

#endif
