/* The frozen base of a job with adapters: the parameters of a run or checkpoint, mapped read-only, so that
 * the processes of a host share one copy in memory.
 *
 * The job's resolved text has its absolute path and its hash: a run continues only with the base that it
 * began with, and refuses another one at that path.
 */
#ifndef TR_JOB_BASE_H
#define TR_JOB_BASE_H

#include "job/job.h"

/* Sets settings->base in the tree of a job that is about to be read. TR_EINVAL where the file has no
   adapters. */
tr_status tr_job_choose_base(struct tr_job *job, const struct tr_job_settings *settings);
/* Opens the base of the network, which must be built; does nothing where it has none. TR_EINVAL where no
   base is named; TR_EMISMATCH for missing parameters, other shapes, or another base than that of the run;
   errors of reading. */
tr_status tr_job_open_base(struct tr_job *job);
/* For a job that was built whole: reads the base's parameters, which the run's checkpoint lacks, into the
   arena. Errors as above. */
tr_status tr_job_load_base(const struct tr_job *job, float *arena);

#endif
