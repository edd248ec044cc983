/* The scores of a teacher for the rows of a pass (job/teacher.h): its parameters and a separate pass, as
 * in evaluations, on the device of the gradient. Every process that computes gradients has one.
 */
#ifndef TR_JOB_LESSON_H
#define TR_JOB_LESSON_H

#include "job/feed/feed.h"
#include "job/job.h"

typedef struct tr_lesson tr_lesson;

/* Opens the teacher of the job, for passes of `limits`; *out is NULL where it has none. `device` and `job`
   are borrowed. Returned, destroy with tr_lesson_destroy(). Errors as tr_teacher_open(). */
tr_status tr_lesson_create(tr_device *device, const struct tr_job *job, const struct tr_pass_limits *limits,
                           tr_lesson **out);
/* Accepts NULL, nulls the handle. */
void tr_lesson_destroy(tr_lesson **lesson);

/* Feeds the teacher the rows [begin, begin + described->examples) of the batch, enqueues its pass, and
   makes `pass` use its scores. Arguments as for tr_feed_rows(). */
tr_status tr_lesson_give(tr_lesson *lesson, tr_feed *feed, const struct tr_batch *batch, int64_t begin,
                         const struct tr_pass_batch *described, tr_pass *pass);

/* Bytes of device memory; and those that a lesson would take, without a device. */
size_t tr_lesson_memory(const tr_lesson *lesson);
tr_status tr_lesson_expect(const struct tr_job *job, const struct tr_pass_limits *limits, int64_t *bytes);
/* The parameters, for code that records the inputs of a step. */
const float *tr_lesson_values(const tr_lesson *lesson, int64_t *floats);

#endif
