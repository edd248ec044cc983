/* The frozen base of a job with adapters: the parameters of a run or checkpoint, mapped read-only, so that
 * the processes of a host share one copy in memory.
 *
 * The job's resolved text says where it is, by an absolute path, and which hash it has: a run goes on only
 * with the base that it began with, and says so where another one lies there.
 */
#ifndef TR_JOB_BASE_H
#define TR_JOB_BASE_H

#include "job/job.h"

/* Puts settings->base into the tree of a job that is about to be read. TR_EINVAL where the file has no
   adapters. */
tr_status tr_job_choose_base(struct tr_job *job, const struct tr_job_settings *settings);
/* Opens the base of the network, which was built; nothing where it has none. TR_EINVAL where none is named,
   TR_EMISMATCH for parameters that are missing there or have other shapes, and for another base than that of
   the run; errors of reading. */
tr_status tr_job_open_base(struct tr_job *job);
/* Reads the base into the arena of a job that was built whole: parameters that the checkpoint of the run has
   not, and that the run's base has. Errors as above. */
tr_status tr_job_load_base(const struct tr_job *job, float *arena);

#endif
