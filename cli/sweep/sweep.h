/* The parts of trireme sweep: the points (points.c), their record on disk (record.c),
 * their runs (run.c), and the printed table (table.c).
 *
 * A point is a job: the model file with the settings that all points share, those of the point, and a
 * seed. Its run has a directory below that of the sweep, which also keeps
 *
 *     sweep.json    the points and how they ended, written anew as each one ends
 *     sweep.csv     the same as a table, and
 *     report.html   a page of the best runs, at the end
 */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "cli/terminal/screen.h"

#include "base/numbers/hash.h"
#include "base/options/option.h"

#define CLI_SWEEP_AXES   16
#define CLI_SWEEP_POINTS 10000

enum cli_sweep_state {
    CLI_SWEEP_WAITING, /* not run, or stopped on the way: its run resumes from its last checkpoint */
    CLI_SWEEP_DONE,
    CLI_SWEEP_FAILED /* for the reason in `failure`; tried again when the sweep is run again */
};

struct cli_sweep_point {
    char *value[CLI_SWEEP_AXES]; /* of each axis; owned */
    int64_t seed;                /* -1: that of the model file */
    int32_t fold;                /* from 1; 0: the sweep has no folds */
    char directory[32];          /* "point-0001", below the sweep's */
    bool wanted;                 /* in this sweep, not only in an earlier one of the directory */
    enum cli_sweep_state state;
    /* From the best evaluation on validation data if there was any, otherwise from the last evaluation,
       otherwise from the last reported step. NaN if unknown. `figure`: the one that judges the sweep. */
    double loss, accuracy, figure;
    char set[16]; /* "validation", "test", "train" */
    double seconds;
    int64_t step;
    char hash[TR_SHA256_TEXT];
    char failure[512];
};

/* A field that points differ in. */
struct cli_sweep_axis {
    char *path;         /* "optimizer.rate"; owned */
    char **value;       /* [count], owned */
    int count;          /* 0: a range */
    double least, most; /* of a range */
    bool whole;         /* of whole numbers */
};

struct cli_sweep_plan {
    struct cli_sweep_axis axis[CLI_SWEEP_AXES];
    int axes;
    struct tr_string_list fixed; /* settings of all points; owned */
    struct cli_sweep_point *points;
    int count, room;
    int64_t seeds;
    int32_t folds;
};

/* Strings and lists are borrowed. */
struct cli_sweep_orders {
    const char *model;
    const struct tr_string_list *set; /* "optimizer.rate=1e-4,1e-3", with several values or one */
    int64_t seeds, seed;              /* how many, and the first; -1: 1, or, if only one, that of the file */
    int64_t random;                   /* points to draw; 0: the whole grid */
    int32_t folds;                    /* of the training data, each in turn for validation; 0: none */
    int64_t split_seed;               /* with which all points choose validation data; -1: each with its
                                         own */
    int workers, threads;             /* runs at a time, and threads of each */
    char by[32];                      /* the figure that decides which is best: "loss", "f1" */
    const char *out;                  /* the sweep's directory */
    char digest[TR_SHA256_TEXT];      /* of the model file */
};

/* Sets split_seed and by, the latter from `by` or, if NULL, from the model file. TR_EINVAL for an unknown
   figure, and errors of reading the file. */
tr_status cli_sweep_choose(const char *by, struct cli_sweep_orders *orders);

/* Finds axes and points; none has a state. TR_EINVAL. Release with cli_sweep_plan_release(), also after a
   failure. */
tr_status cli_sweep_plan(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan);
void cli_sweep_plan_release(struct cli_sweep_plan *plan);
/* Splits only the settings, into `fixed` and axes. Likewise. */
tr_status cli_sweep_axes(const struct tr_string_list *set, bool ranges, struct cli_sweep_plan *plan);
/* Adds "optimizer.rate=1e-3 seed=2", or the model's name if nothing differs. */
void cli_sweep_name(const struct cli_sweep_plan *plan, const struct cli_sweep_point *point,
                    struct tr_text *text);
/* Adds a point with copies of the values, of which NULL is none. TR_ENOMEM. */
tr_status cli_sweep_add(struct cli_sweep_plan *plan, char *const *value, int64_t seed, int32_t fold,
                        struct cli_sweep_point **out);
/* Whether the figure that judges has a separate column. */
bool cli_sweep_has_figure(const struct cli_sweep_orders *orders);

/* Takes the states of points from sweep.json, if it exists, and gives the other points directories. Points
   that only the file has stay in the plan, unwanted. TR_EMISMATCH if it is of another model file, other
   axes or other settings; TR_EFORMAT. */
tr_status cli_sweep_recall(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan);
/* Writes sweep.json. */
tr_status cli_sweep_write_record(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan);

/* Runs the points that are wanted and not done; reports how each ended. Signals end it in good order.
   TR_EIO if the record cannot be written. */
tr_status cli_sweep_run(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan,
                        struct cli_screen *screen);

/* The rate of a step of the range test, from 0. */
double cli_rate_of_step(int step);
/* The range test (rate_test.c): one run with the settings of all points and a rising rate; prints the
   result, and writes rate-test.csv and rate-test.html. TR_EINTERRUPTED after a signal, TR_EIO, errors of
   the trainer. */
tr_status cli_sweep_rate_test(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan);

/* Indices of the wanted points, the best first, unfinished ones last. Returned, free with tr_free().
   TR_ENOMEM. */
tr_status cli_sweep_rank(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                         int **order, int *count);
/* The results of the sweep as a table for people; `order` [count] as above. Returned, free with tr_free().
 * TR_ENOMEM. */
tr_status cli_sweep_table(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                          const int *order, int count, char **out);
/* The same as comma-separated values. */
tr_status cli_sweep_csv(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                        const int *order, int count, char **out);

#endif
