/* The rows of some neighbouring microbatches of a batch, described for a pass. */
#ifndef TR_JOB_ROWS_H
#define TR_JOB_ROWS_H

#include "data/order/batch.h"
#include "job/job.h"
#include "nn/pass/pass.h"

/* The memory that a description points to; zeros hold nothing. */
struct tr_rows {
    int64_t *example_row, *token_row, *second_row; /* [microbatches + 1] */
    int32_t bound[2];
};

/* Room for `microbatches` microbatches. TR_ENOMEM. Release with tr_rows_release(), also after a failure. */
tr_status tr_rows_create(struct tr_rows *rows, int64_t microbatches);
void tr_rows_release(struct tr_rows *rows);
/* The most examples and tokens in `microbatches` neighbouring microbatches of a part of the batch that has
   at most `rows` examples with `tokens` tokens in all (0 without sequences), and `second` of the second text.
 */
void tr_rows_most(const struct tr_job *job, int64_t microbatches, int64_t rows, int64_t tokens,
                  int64_t second, struct tr_pass_limits *limits);
/* Describes microbatches [first, end) of the step's batch, whose rows the host batch holds, as one node of
   the tree. The mean of the loss is over `global_examples` examples or, of tokens, `global_labels` labels.
   *out borrows from rows until the next call; its rows begin at out->first_example - batch->first of the host
   batch. */
void tr_rows_describe(struct tr_rows *rows, const struct tr_job *job, const struct tr_batch *batch,
                      int64_t first, int64_t end, int64_t global_examples, int64_t global_labels,
                      struct tr_step_scalars *scalars, struct tr_pass_batch *out);

#endif
