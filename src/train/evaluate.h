/* Evaluation: forward passes over a source in its own order. */
#ifndef TR_TRAIN_EVALUATE_H
#define TR_TRAIN_EVALUATE_H

#include "job/feed.h"
#include "job/job.h"

typedef struct tr_evaluator tr_evaluator;

struct tr_evaluation {
    int64_t examples;
    double loss;     /* mean */
    double accuracy; /* 0..1; 0 for regression */
};

/* For a source that fits the job (tr_job_check_source()). All borrowed for the life of the evaluator.
   Returned, destroy with tr_evaluator_destroy(). */
tr_status tr_evaluator_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              tr_evaluator **out);
void tr_evaluator_destroy(tr_evaluator **evaluator);

/* Given the network's output of rows [first, first + rows) of the source, on the host; borrowed for the call.
 */
typedef tr_status (*tr_output_listener)(void *user, int64_t first, int64_t rows, const float *output,
                                        const int32_t *labels);

/* Runs examples [first, end) with an arena of parameters (device memory). Means are sums in ascending order
   of the examples, in double, so that they do not depend on the size of a batch. `result` may be NULL, and
   must be where the source has no labels; `listener` may be NULL. */
tr_status tr_evaluator_run(tr_evaluator *evaluator, const float *parameters, int64_t first, int64_t end,
                           tr_output_listener listener, void *user, struct tr_evaluation *result);

#endif
