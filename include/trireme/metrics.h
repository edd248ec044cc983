/* The results of an evaluation beyond loss and accuracy (docs/reference/metrics.md).
 *
 * Sums are in double and in the order of the examples, so that figures are the same on any number of
 * processes. They equal scikit-learn's for the probabilities or values of `trireme predict`.
 */
#ifndef TRIREME_METRICS_H
#define TRIREME_METRICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One figure. */
struct tr_metric {
    const char *name; /* "f1" */
    double value;     /* NaN if the data leave it undefined */
};

/* The metrics of an evaluation besides loss and accuracy. Further members may be appended in later
   versions. */
struct tr_metrics {
    int count;                      /* of `metric` */
    const struct tr_metric *metric; /* [count] of all outputs together */
    int64_t outputs;                /* classes, questions or values */
    int columns;                    /* figures of each output; 0 for none */
    const char *const *column;      /* [columns] their names */
    const double *table;            /* [outputs][columns]; NaN where undefined */
    const char *const *name;        /* [outputs] of the outputs, or NULL */
};

#ifdef __cplusplus
}
#endif
#endif
