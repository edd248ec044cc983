/* The sources of a job's data sets. */
#ifndef TR_JOB_SETS_H
#define TR_JOB_SETS_H

#include "job/job.h"

/* The node of the model file that describes a set, which is split afterwards where `validation_split` says
   so; NULL where the file names none. Borrowed from the job. */
const tr_config *tr_job_set_node(const struct tr_job *job, enum tr_data_set set);

#endif
