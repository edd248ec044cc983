/* Plans: predictions for strategies on a cluster, as rows to compare. */
#ifndef TR_PLAN_PLAN_H
#define TR_PLAN_PLAN_H

#include "plan/rehearsal.h"

struct tr_plan_row {
    char *strategy; /* as on a command line; owned */
    int workers, ranks;
    int64_t batch, microbatches; /* of a step, or of an update */
    char *left_out;              /* why there is no prediction, or NULL; owned */
    struct tr_rehearsed figures;
    double measured; /* examples per second of a real run; NaN: none was made */
    char *failure;   /* why the real run ended early, or NULL; owned */
};

struct tr_plan {
    const char *name;          /* of the job; borrowed, as the following */
    const char *device;        /* for people */
    struct tr_cluster cluster; /* on which rows with fewer ranks use the first hosts */
    bool grows;                /* the batch grows with the workers */
    struct tr_plan_row *row;   /* [rows]; the first is one process */
    int rows;
    double again; /* measured examples per second of the first row at the end; 0: not measured */
};

void tr_plan_release(struct tr_plan *plan);

/* Ratio of examples per second to the first row's; NaN: unknown. */
double tr_plan_speedup(const struct tr_plan *plan, int row);
/* The name of a row for people: its strategy; a single process has none. */
const char *tr_plan_row_name(const struct tr_plan *plan, int row);
/* The row with most examples per second; -1: there is none. */
int tr_plan_best(const struct tr_plan *plan);
/* Whether two rows with equally many workers were left out for the same reason. */
bool tr_plan_go_together(const struct tr_plan_row *a, const struct tr_plan_row *b);
/* The error of a prediction: its examples per second divided by the measured ones, less 1; NaN: not
   measured. */
double tr_plan_error(const struct tr_plan_row *row);

/* The time of a step with three digits, since plans are about fast ones, too: "0.047 ms", "1.25 ms", "4.2 s".
   Written to `text`, which is returned. */
const char *tr_plan_step_text(double seconds, char text[TR_TEXT_NUMBER_SIZE]);
/* Tables and curves as a separate page, in the style of reports. Returned, free with tr_free().
 * TR_ENOMEM.
 */
tr_status tr_plan_page(const struct tr_plan *plan, char **html);
/* Only the curves, as a picture: examples per second of every strategy over ranks, or the ratio to as many
   single processes. Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_plan_picture(const struct tr_plan *plan, const char *title, char **svg);
/* All figures as JSON. Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_plan_json(const struct tr_plan *plan, char **json);

#endif
