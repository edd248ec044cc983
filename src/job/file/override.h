/* Changes to a model file by the command line, before the sections of the file are read. */
#ifndef TR_JOB_OVERRIDE_H
#define TR_JOB_OVERRIDE_H

#include "base/options/config.h"
#include "job/job.h"

/* Applies the settings to the tree of a model file: strategy, overrides, seed, and steps or epochs, in this
   order. TR_EINVAL names the path as far as it exists, TR_ENOMEM. */
tr_status tr_job_override(tr_config *root, const struct tr_job_settings *settings);

#endif
