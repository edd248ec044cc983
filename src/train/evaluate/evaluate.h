/* Evaluation: forward passes over a source in its own order, by one rank or by all of a job.
 *
 * Ranks divide the examples, the layers, or both, as in training: each has an evaluator of its part.
 * Activations go from those that have some layers to those that have the next ones, batch by batch; while
 * one batch is computed, the next one arrives and the last one is sent.
 */
#ifndef TR_TRAIN_EVALUATE_H
#define TR_TRAIN_EVALUATE_H

#include "comm/comm.h"
#include "job/feed/feed.h"
#include "job/job.h"
#include "job/step/shared_weights.h"
#include "train/evaluate/metrics.h"

typedef struct tr_evaluator tr_evaluator;

/* A rank's part of a shared evaluation. */
struct tr_evaluation_part {
    int first_layer, end_layer;
    int previous, next; /* ranks with the neighbouring layers of the same examples; -1 at the ends */
    tr_comm *comm;      /* NULL where there are no neighbours */
    /* The rank that has a layer for the same examples; called when an evaluator is made. */
    tr_layer_rank rank_of;
    const void *user;
};

/* Of all examples. */
struct tr_evaluation {
    int64_t examples;
    double loss;     /* mean over examples (for pixels, those with any label), or over the labels of tokens,
                        without label smoothing */
    double accuracy; /* 0..1; 0 where answers are not right or wrong */
};

/* For a source that fits the job (tr_job_check_source()). `part` NULL: all layers, alone. All except the
   part is borrowed for the life of the evaluator. `again`: it will run more than once. With neighbours the
   device computes in the host's memory. Returned, destroy with tr_evaluator_destroy(). */
tr_status tr_evaluator_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              const struct tr_evaluation_part *part, bool again, tr_evaluator **out);
void tr_evaluator_destroy(tr_evaluator **evaluator);

/* Results for some examples, on the host; borrowed for the call of the listener. */
struct tr_evaluated_part {
    int64_t first, examples; /* [first, first + examples) of the source */
    int64_t rows;            /* these, or their tokens or pixels */
    const float *output;     /* [rows][outputs], as the network gives them */
    const int32_t *labels;   /* [rows] classes, TR_NO_LABEL where a token or pixel has none; or NULL */
    const float *targets;    /* [examples][values], or NULL */
    const int32_t
        *offset; /* where rows are tokens, else NULL: [examples + 1], where those of an example begin */
    const int32_t *tokens; /* then, without neighbours: [rows] */
};
typedef tr_status (*tr_output_listener)(void *user, const struct tr_evaluated_part *part);

/* Runs examples [first, end) with an arena of parameters (device memory). rows[0] receives the figures of
   example `first`, and so on, if the part ends with the network; else `rows` does not change. It may be
   NULL, and must be where the source has no labels. `listener` may be NULL, and must be where the part
   does not end with the network. `answers` is [end - first][tr_metrics_width()] and goes as `rows`; NULL:
   not wanted. Collective among neighbours. */
tr_status tr_evaluator_run(tr_evaluator *evaluator, const float *parameters, int64_t first, int64_t end,
                           tr_output_listener listener, void *user, struct tr_evaluated_row *rows,
                           float *answers);

/* Means over the labels of the rows, summed in ascending order in double, so that they depend neither on the
   size of a batch nor on how many ranks evaluated. */
struct tr_evaluation tr_evaluation_of(const struct tr_evaluated_row *rows, int64_t count);

#endif
