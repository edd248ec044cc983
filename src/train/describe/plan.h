/* Looking at what a training would be, before anything is opened. */
#ifndef TR_TRAIN_PLAN_H
#define TR_TRAIN_PLAN_H

#include "job/job.h"
#include "trireme/train.h"

/* What the settings change in a job, whose strings are theirs. */
struct tr_job_settings tr_train_changes(const struct tr_train_settings *settings);
/* What messages call the model file; NULL where the settings name none. Borrowed from them. */
const char *tr_train_model_name(const struct tr_train_settings *settings);
/* settings->model_text with all that belongs to it. Borrowed likewise. */
struct tr_job_text tr_train_model_text(const struct tr_train_settings *settings);
/* The path of the model file that a checkpoint keeps, or that of the newest one in a run directory. Whether
   the checkpoint is good shows when it is opened. Returned, free with tr_free(). TR_ENOTFOUND, TR_EIO. */
tr_status tr_train_kept_file(const char *path, char **out);

/* The run's directory of what is to be replayed: that, or the one that the log lies in. Returned, free with
 * tr_free(). */
char *tr_train_replayed_run(const char *replay);

#endif
