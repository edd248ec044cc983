/* Which sections of a model file may be abbreviated, so that overrides can name any of their keys. */
#ifndef TR_JOB_SHORT_FORMS_H
#define TR_JOB_SHORT_FORMS_H

#include "job/job.h"

/* A tr_config_forms for the tree of a model file; `user` is a const struct tr_job_settings. */
enum tr_config_short tr_job_short_form(void *user, const tr_config *node, const char **key);

#endif
