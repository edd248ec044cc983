/* Reads a run's record: the file `journal.jsonl` of its directory (report/lines.h).
 *
 * A resumed run continues the same file, and repeated steps count once. For an asynchronous run the log of
 * its updates has the staleness of its gradients (strategy/updates).
 */
#ifndef TR_REPORT_RUN_H
#define TR_REPORT_RUN_H

#include "report/lines.h"
#include "strategy/updates/log.h"
#include "train/observe/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tr_run_point {
    int64_t step;
    double loss, accuracy, rate, norm, seconds, speed; /* NaN where not recorded */
};

struct tr_run_evaluation {
    int64_t step;
    double loss, accuracy, perplexity; /* the last is NaN unless losses are of tokens */
    const char *set;
    const struct tr_json_value *metrics, *outputs; /* objects of the journal, or NULL */
};

struct tr_run_rank {
    int64_t sent, received, shared; /* bytes */
    double wait, compute;           /* seconds */
};

#define TR_RUN_BINS TR_UPDATE_BINS

/* Texts are borrowed from the run; "" where the run has none. */
struct tr_run {
    char *path; /* directory of the run */
    const char *name, *model, *device, *strategy, *version, *host, *command, *settings, *started;
    const char *settings_text, *strategy_options; /* in YAML */
    int64_t seed, parameters, batch, microbatches, steps, ranks;
    int64_t step; /* steps done, as far as recorded */
    bool classification;
    struct tr_run_evaluation best; /* whose weights are kept; step 0: none */
    double label_smoothing;        /* of the losses of steps, not of evaluations */
    struct tr_run_point *point;
    int64_t points;
    struct tr_run_evaluation *evaluation;
    int64_t evaluations;
    const char *shares; /* which rank computed which part of a step at the end; NULL: equal parts */
    const char **warning;
    int64_t warnings;
    struct tr_run_rank *rank;
    int64_t rank_count;
    int64_t staleness[TR_RUN_BINS], staleness_count, dropped;
    bool asynchronous;
    bool ended; /* the end of the run was recorded */
    const char *status, *message, *hash, *checkpoint;
    double seconds, speed, tokens; /* speed: examples per second; tokens: per second */
    int resumed;                   /* number of times the run was resumed */
    struct tr_json_lines lines;    /* owns the texts */
};

/* Reads the journal in a run's directory. TR_ENOTFOUND where there is none, TR_EFORMAT where not even its
   first line can be read, TR_EIO, TR_ENOMEM. Returned, destroy with tr_run_destroy(). */
tr_status tr_run_read(const char *directory, struct tr_run **out);
/* Accepts NULL, nulls the handle. */
void tr_run_destroy(struct tr_run **run);

#endif
