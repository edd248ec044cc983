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
    bool alone;         /* the single process, with which the others are compared */
    bool asynchronous;  /* its hash is different in every run */
    bool own_hash;      /* its hash is the same in every run, but no other case has it */
    char *left_out;     /* the reason not to run it, or NULL; owned */
};

struct cli_compare_plan {
    struct cli_compare_case *cases; /* the single processes first */
    int count;
    int64_t evaluate_every; /* steps, where a target is to be met */
    int width;              /* columns that rows may take; 0: any number */
};

/* The comparison that was ordered. Strings and lists are borrowed. */
struct cli_compare_orders {
    const char *model;
    const struct tr_string_list *set;
    const char *strategies; /* "all", or names, some with options: "allreduce,local-sgd,every=4" */
    const struct tr_int_list *workers;
    double until;          /* accuracy that ends a run; 0: none */
    double budget;         /* the limit for a run in seconds; 0: none */
    int64_t steps;         /* of a run; 0: as in the model file */
    int64_t seed;          /* -1: as in the model file */
    int32_t threads;       /* to divide among processes; 0: as many as processors */
    const char *directory; /* directory for the files of the runs */
    const char *hosts;     /* for runs of several processes, as `trireme launch` takes them; NULL: this one */
};

/* Steps of a job that is examined, not run. */
#define CLI_COMPARE_MANY TR_OPTION_WHOLE

/* Fills `plan`, release with cli_compare_plan_release(), also after a failure. Errors are those of reading
   the model file; TR_ENOTFOUND for unknown strategies. */
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
    char failure[512]; /* the last message of a failed run; or what is wrong with the run */
    bool refused;      /* the model file or the data made it fail, as they would under any strategy */
    int64_t step;
    double seconds, examples_per_second;
    double steady_examples_per_second;    /* without the first step, which finds memory and caches cold */
    double accuracy;                      /* at the end; NaN: unknown, or not a classification */
    double loss;                          /* on the same data; NaN: unknown */
    double target_seconds, target_epochs; /* until the target was met; NaN: it was not met */
    char hash[65];
    bool has_statistics;
    struct cli_statistics statistics;
    int64_t dropped;
    double again; /* examples per second of the same run once all others had ended; 0: not measured */
};

/* Runs a case in one or several new processes, and shows its progress on the screen. Returns TR_OK even if
   the run failed, which `result` shows. TR_EIO, TR_ENOMEM if no process could be started. */
tr_status cli_compare_run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_case *one, struct cli_screen *screen,
                          struct cli_compare_result *result);

/* ---- what is said ---- */

/* Whether the hash must equal that of the single process, and whether it does. */
enum cli_compare_hash { CLI_HASH_OTHER, CLI_HASH_EQUAL, CLI_HASH_NOT_EQUAL };
enum cli_compare_hash cli_compare_hash(const struct cli_compare_plan *plan,
                                       const struct cli_compare_result *results, int index);
/* Whether there are figures: the run ended, or reached the end of its budget. */
bool cli_compare_has_run(const struct cli_compare_result *result);
/* Whether a result replaces an earlier one of the same case: the better one does, and a failure replaces
   any other. */
bool cli_compare_counts(const struct cli_compare_orders *orders, const struct cli_compare_result *before,
                        const struct cli_compare_result *now);
/* The speedup over the single process; NaN: unknown. */
double cli_compare_speedup(const struct cli_compare_result *results, int index);
/* The run that met the target first, or without a target the fastest; -1: none. */
int cli_compare_best(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                     const struct cli_compare_result *results);

/* Whether the figures of a run are impossible, so that the machine must have been busy. */
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
