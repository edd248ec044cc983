/* Variants of an open job: another strategy, another batch, other data. */
#ifndef TR_PLAN_VARIANT_H
#define TR_PLAN_VARIANT_H

#include "job/job.h"

struct tr_job_variant {
    struct tr_job job; /* borrows everything unchanged from the job that it is a variant of */
    tr_config *root;   /* of the strategy; owned */
    tr_source *blank;  /* owned */
};

struct tr_job_variant_settings {
    const char *strategy;        /* as on a command line; NULL: the job's */
    int64_t batch, microbatches; /* 0: the job's */
    int64_t steps;               /* 0: the job's */
    bool blank; /* examples that have only their sizes, as many as wanted, in place of the data */
};

/* `job`, whose training data are open, is borrowed for the life of the variant. Released with
   tr_job_variant_release(), also after a failure. TR_EINVAL for an unknown strategy, TR_ENOMEM. */
tr_status tr_job_variant_make(const struct tr_job *job, const struct tr_job_variant_settings *settings,
                              struct tr_job_variant *out);
void tr_job_variant_release(struct tr_job_variant *variant);

#endif
