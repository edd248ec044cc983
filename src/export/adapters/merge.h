/* Merges adapters into a network: each product a b' times its scale is added to the weights beside it. */
#ifndef TR_EXPORT_ADAPTERS_MERGE_H
#define TR_EXPORT_ADAPTERS_MERGE_H

#include "job/job.h"

/* For a job that was built whole, with its parameters in `arena`. *merged is the same job without
   adapters, destroyed with tr_job_destroy(), and *parameters its arena, freed with tr_free(). A weight is
   w + the chain over the rank of fma(a scale, b'). TR_EINVAL where there are no adapters, TR_ENOMEM. */
tr_status tr_adapters_merge(const struct tr_job *job, const float *arena, struct tr_job **merged,
                            float **parameters);

#endif
