/* The parts of trireme plan: rows and their figures (run.c), the network of this host (probe.c),
 * the printed table (table.c), and runs that check a plan (verify.c).
 */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/terminal/screen.h"

#include "base/options/option.h"
#include "plan/machine.h"
#include "plan/plan.h"

/* The plan that was ordered. Strings and lists are borrowed. */
struct cli_plan_orders {
    const char *model;
    const struct tr_string_list *set;
    const char *strategies; /* as for a comparison */
    int workers[TR_OPTION_LIST_MAX], worker_counts;
    bool grow;
    int threads;        /* of each rank; 0: the processors divided by the ranks */
    int processors;     /* of this machine */
    double seconds;     /* to measure each part */
    double run_seconds; /* of a run for checking, about */
    int32_t calls;      /* steps that are measured */
    const char *hosts;  /* for the runs, NULL: this one */
    const char *traces; /* directory for the actions of the ranks; NULL: not kept */
    struct tr_device_choice device;
};

/* The number of threads of each rank of a row with so many workers, and how many of these share a host, at
   most. Ranks that only serve take turns with them. */
int cli_plan_threads(const struct cli_plan_orders *orders, const struct tr_cluster *cluster, int workers,
                     int *on_host);

/* Fills the rows of the plan, whose cluster is set: combinations, time and memory. `job` has its training
   data open. Release with tr_plan_release(), also after a failure. */
tr_status cli_plan_rows(const struct cli_plan_orders *orders, struct tr_plan *plan);
tr_status cli_plan_figures(const struct cli_plan_orders *orders, const struct tr_job *job,
                           struct cli_screen *screen, struct tr_plan *plan);

/* Notes in `machine` the parts that ranks of a row compute: an even part of the batch, a pipeline's portion,
   or the whole batch if each worker computes whole batches. TR_ENOMEM. */
tr_status cli_plan_expect(const struct cli_plan_orders *orders, const struct tr_plan *plan,
                          const struct tr_plan_row *row, struct tr_machine *machine);

/* Measures messages between two processes of this host. TR_EUNSUPPORTED if they cannot be joined. */
tr_status cli_plan_probe(struct tr_path *out);

/* The number of round trips for measuring a network on which one takes `word` seconds: at least one, even
   if it takes longer than a measurement should. */
int cli_plan_rounds(double word);

/* The same between the first two of `hosts`, as `launch --hosts` takes them. Also returns how many hosts
   there are, and processes on each. All of them have `model`. TR_EINVAL, TR_EIO with the messages of the
   processes. */
tr_status cli_plan_probe_hosts(const char *model, const char *hosts, int *count, int *each,
                               struct tr_path *out);
/* In one of the two measuring processes, with the token for notes to their launcher, or NULL. */
tr_status cli_plan_answer(const char *launched);

/* Lines for people, without line feeds; returned, free with tr_free(), NULL when memory fails. */
/* Rows take at most `width` columns; 0: any number. */
char *cli_plan_head(const struct tr_plan *plan, int width);
char *cli_plan_row(const struct tr_plan *plan, int row, int width);
/* All rows of as many workers that were left out for the same reason as this one, the first of them. */
char *cli_plan_left_out(const struct tr_plan *plan, int row);
/* Whether there is an earlier one. */
bool cli_plan_is_said(const struct tr_plan *plan, int row);
char *cli_plan_verdict(const struct tr_plan *plan);

/* Runs the most promising rows on this host, at most `count`, and notes their results. `job` is that of
   the plan. */
tr_status cli_plan_verify(const struct cli_plan_orders *orders, const struct tr_job *job,
                          struct cli_screen *screen, int count, struct tr_plan *plan);

#endif
