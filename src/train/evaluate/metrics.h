/* Metrics of an evaluation, from the results of each example. */
#ifndef TR_TRAIN_METRICS_H
#define TR_TRAIN_METRICS_H

#include "base/text/json.h"
#include "job/job.h"
#include "trireme/metrics.h"

/* Of an example; of one whose tokens have labels, sums over these. */
struct tr_evaluated_row {
    float loss, correct;   /* correct: 1 or 0, a fraction where there are several answers; 0 where there is
                              none */
    int32_t label, answer; /* classes; -1 where there are none */
    int32_t place; /* rank of the label among the classes by score, from 0; of equal scores the lower class
                      comes first */
    float labels;  /* 1, or of tokens; 0 where no pixel has one */
};

/* The floats of an example that metrics want beside its row: the outputs as people get them
   (train/evaluate/answer.h) and, where these are no classes, as many targets after them. 0 where they want
   none, as of losses of tokens, or where `examples` of them would be too many. */
int64_t tr_metrics_width(const struct tr_job *job, int64_t examples);

/* How many targets these are. */
static inline int64_t tr_metrics_targets(const struct tr_job *job)
{
    return tr_loss_targets(&job->model->loss, tr_shape_count(&job->model->output));
}

/* The floats of an example where metrics need any. For pixels three for each class: how many are of it and
   answered so, how many are answered so, how many are of it. */
static inline int64_t tr_metrics_row(const struct tr_job *job)
{
    if (tr_job_pixels(job) > 0) return 3 * tr_job_width(job);
    return tr_shape_count(&job->model->output) + tr_metrics_targets(job);
}

/* `rows` [examples] in the order of the data; `answers` [examples][width], NULL where the width is 0;
   `loss` is the mean. The job is borrowed for the life of the metrics, the rest for the call. *out is NULL
   where there are no metrics, as for losses of tokens. Returned, destroy with tr_metrics_destroy().
   TR_ENOMEM. Any thread. */
tr_status tr_metrics_make(const struct tr_job *job, int64_t examples, const struct tr_evaluated_row *rows,
                          const float *answers, double loss, struct tr_metrics **out);
/* Accepts NULL, nulls the handle. */
void tr_metrics_destroy(struct tr_metrics **metrics);

/* The rank of `label` among the scores of an example. */
int32_t tr_metrics_place(const float *score, int32_t classes, int32_t label);

/* Adds the members "metrics" and "outputs" (a list for each figure); nothing where there are no metrics.
   Figures of single outputs are left out where these are many. */
void tr_metrics_add(struct tr_json_writer *json, const struct tr_metrics *metrics);

#endif
