/* Names and shapes of a run's arenas in checkpoints. */
#ifndef TR_JOB_TENSORS_H
#define TR_JOB_TENSORS_H

#include "io/safetensors.h"
#include "job/job.h"
#include "job/step/variables.h"

/* A parameter's part of an arena, under `name` (borrowed); without data where `arena` is NULL. */
struct tr_stored_tensor tr_parameter_tensor(const struct tr_parameter *parameter, const char *name,
                                            float *arena);

#define TR_STATE_NAME (sizeof(((struct tr_parameter *)0)->name) + 32)
/* The name of a parameter's part of an arena (whose name has at most 31 bytes): "m.conv1.weights". */
void tr_state_name(const struct tr_parameter *parameter, const char *arena, char name[TR_STATE_NAME]);

/* Reads the parameters in a checkpoint of the job, without those of a base (job/base.h), into `arena`,
   host memory of arena_floats floats; with `use_average`, the moving averages instead, where the
   checkpoint has them. Gaps do not change. TR_EMISMATCH for a checkpoint of another network, TR_EIO,
   TR_ECORRUPT, TR_ENOMEM. */
tr_status tr_job_load_parameters(const struct tr_job *job, tr_checkpoint *checkpoint, bool use_average,
                                 float *arena);

/* tr_model_hash() of the parameters in a checkpoint of the job, which are read in pieces. TR_EMISMATCH,
   TR_EIO, TR_ENOMEM. */
tr_status tr_job_stored_hash(const struct tr_job *job, tr_checkpoint *checkpoint, char hex[TR_SHA256_TEXT]);

#endif
