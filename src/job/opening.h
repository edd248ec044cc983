/* Opening data sets on a separate thread while the network is made ready: unpacking and first touching
 * memory take about equal parts of the time to the first step.
 */
#ifndef TR_JOB_OPENING_H
#define TR_JOB_OPENING_H

#include "job/job.h"

typedef struct tr_opening tr_opening;

/* Begins to open the sets that the job names and has not opened yet. Until tr_opening_finish() the job
   must not be changed. Returned, end with tr_opening_finish(). If no thread can be started, finishing does
   the work. */
tr_status tr_opening_begin(struct tr_job *job, tr_opening **out);
/* Waits, and gives the sources to the job: the training data, and the other data where named. Returns the
   first failure, with its message. Accepts NULL, nulls the handle, also after a failure. With `abandon`
   the job gets nothing. */
tr_status tr_opening_finish(tr_opening **opening, bool abandon);

#endif
