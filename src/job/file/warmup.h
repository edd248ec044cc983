/* The warm-up of a run that `steps` or `epochs` of the settings make shorter than the model file meant it.
 *
 * Where it would leave nothing of a cosine, or a line, that ends with the training, it becomes the same
 * fraction of the run as it is in the file. A run that is longer than the warm-up of the file keeps that.
 */
#ifndef TR_JOB_WARMUP_H
#define TR_JOB_WARMUP_H

#include "job/job.h"

/* Notes in the job how long the file wants to train, before `settings` are applied. */
void tr_warmup_record(struct tr_job *job, const struct tr_job_settings *settings);
/* Whether the warm-up leaves nothing of the steps to train, and may be shrunk. */
bool tr_warmup_is_long(const struct tr_job *job);
/* Whether the training data have to be there before it can be: the file counts epochs. */
bool tr_warmup_needs_data(const struct tr_job *job);
/* Shrinks it in the tree, with a warning in the log, once the steps are counted. TR_ENOMEM. */
tr_status tr_warmup_shrink(struct tr_job *job);

#endif
