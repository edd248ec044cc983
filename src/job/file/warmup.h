/* The warm-up of a run that `steps` or `epochs` of the settings make shorter than the model file says.
 *
 * Where the schedule is a cosine, or a line, that ends with the training, and the warm-up would take all
 * of it, the warm-up becomes the same fraction of the run as in the file. A run longer than the file's
 * warm-up keeps it.
 */
#ifndef TR_JOB_WARMUP_H
#define TR_JOB_WARMUP_H

#include "job/job.h"

/* Notes how long the file says to train, before `settings` are applied. */
void tr_warmup_record(struct tr_job *job, const struct tr_job_settings *settings);
/* Whether the warm-up takes all steps of the training, and may be shortened. */
bool tr_warmup_is_long(const struct tr_job *job);
/* Whether shortening needs the training data, since the file counts epochs. */
bool tr_warmup_needs_data(const struct tr_job *job);
/* Shortens it in the tree, with a warning in the log, once the steps are known. TR_ENOMEM. */
tr_status tr_warmup_shrink(struct tr_job *job);

#endif
