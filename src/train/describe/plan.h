/* Inspecting a training before anything is opened. */
#ifndef TR_TRAIN_PLAN_H
#define TR_TRAIN_PLAN_H

#include "job/job.h"
#include "trireme/train.h"

/* The settings that change a job, with borrowed strings. */
struct tr_job_settings tr_train_changes(const struct tr_train_settings *settings);
/* The name of the model file in messages; NULL where the settings name none. Borrowed from them. */
const char *tr_train_model_name(const struct tr_train_settings *settings);
/* settings->model_text with its accompanying settings. Borrowed likewise. */
struct tr_job_text tr_train_model_text(const struct tr_train_settings *settings);
/* The path of the model file that a checkpoint keeps, or that of the newest one in a run directory. The
   checkpoint is checked only when it is opened. Returned, free with tr_free(). TR_ENOTFOUND, TR_EIO. */
tr_status tr_train_kept_file(const char *path, char **out);

/* The directory of the run to replay: that of the settings, or the one that contains the log. Returned,
 * free with tr_free().
 */
char *tr_train_replayed_run(const char *replay);

#endif
