/* Which checkpoint a run resumes: chosen by the root and opened by all ranks of the job. */
#ifndef TR_TRAIN_RESUME_H
#define TR_TRAIN_RESUME_H

#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "trireme/train.h"

/* The kind of directories (base/scratch_dir.h) for received copies; killed ranks leave theirs. */
#define TR_RESUME_SCRATCH "resume"

/* Opens what the settings ask for: the newest good checkpoint of `out` with `continues`, if there is one,
   else `state`, else `resume`; *out is NULL where there is none. The root chooses. Ranks that find the
   same checkpoint at the same path open it there; others get a copy from the root, so that only the root's
   host needs it. Collective with a communicator (NULL: a single process). Returned, close with
   tr_checkpoint_close(). Errors as for tr_checkpoint_open(). */
tr_status tr_train_resume(tr_comm *comm, const struct tr_train_settings *settings, tr_checkpoint **out);

#endif
