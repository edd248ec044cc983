/* Jobs as far as metrics look at them, and the figures that they get. */
#ifndef TESTS_TRAIN_CASE_METRICS_H
#define TESTS_TRAIN_CASE_METRICS_H

#include "train/evaluate/metrics.h"

/* A job as far as metrics look at it. */
struct case_job {
    struct tr_job job;
    struct tr_model model;
};
void make_job(struct case_job *made, const char *loss, int64_t outputs, int32_t top_k);
/* The place of a loss in the table. */
int32_t case_loss(const char *name);

/* A figure by its name, of all outputs or of one; fails the test where there is none. */
double metric(const struct tr_metrics *metrics, const char *name);
bool has_metric(const struct tr_metrics *metrics, const char *name);
double of_output(const struct tr_metrics *metrics, int64_t output, const char *column);
void near(double got, double expected);

/* tr_metrics_make(), which must succeed. */
struct tr_metrics *measure(const struct case_job *made, int64_t examples, const struct tr_evaluated_row *rows,
                           const float *answers, double loss);

#endif
