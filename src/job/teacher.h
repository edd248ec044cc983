/* The teacher of a job with `distill`: a trained network whose scores the network learns beside the labels.
 * It stays as it is and computes as in evaluations, on the rows that the network gets, augmented ones
 * included.
 *
 * The job's resolved text says where it is, by an absolute path, and which hash it has: a run goes on only
 * with the teacher that it began with.
 */
#ifndef TR_JOB_TEACHER_H
#define TR_JOB_TEACHER_H

#include "job/job.h"

struct tr_teacher {
    struct tr_job *job;        /* without data */
    float *values;             /* [arena_floats] of its parameters, their averages where it keeps such */
    char hash[TR_SHA256_TEXT]; /* of these */
    tr_checkpoint *checkpoint;
};

/* Opens it, and checks that it takes what the network takes and has a score for each of its classes.
   TR_EINVAL, TR_EMISMATCH for one that does not, or for another one than that of the run; errors of reading.
   Release with tr_teacher_release(), also after a failure. */
tr_status tr_teacher_open(const struct tr_job *job, struct tr_teacher *out);
void tr_teacher_release(struct tr_teacher *teacher);

/* Whether the job has one. */
static inline bool tr_job_is_taught(const struct tr_job *job)
{
    return job->distill.teacher != NULL;
}
/* Puts settings->teacher into the tree of a job that is about to be read. TR_ENOMEM. */
tr_status tr_job_choose_teacher(struct tr_job *job, const struct tr_job_settings *settings);
/* Reads the section `distill`, if there is one, which says something about the loss as well. */
tr_status tr_job_read_distill(struct tr_job *job);
/* Lets the loss of the network, which was built, know. TR_EINVAL for a loss that has nothing to distil. */
tr_status tr_job_settle_distill(struct tr_job *job);
/* For a job from a model file: opens the teacher, and notes path and hash in the text. Errors as above. */
tr_status tr_job_note_teacher(struct tr_job *job);

#endif
