/* The teacher of a job with `distill`: a trained network, from whose scores the network learns in addition
 * to the labels. It does not change, and computes as in evaluations, on the network's rows, including
 * augmented ones.
 *
 * The job's resolved text has its absolute path and its hash: a run continues only with the teacher that
 * it began with.
 */
#ifndef TR_JOB_TEACHER_H
#define TR_JOB_TEACHER_H

#include "job/job.h"

struct tr_teacher {
    struct tr_job *job;        /* without data */
    float *values;             /* [arena_floats] its parameters, or their averages where it keeps these */
    char hash[TR_SHA256_TEXT]; /* of these, "" where they were not read */
    tr_checkpoint *checkpoint;
};

/* Opens the teacher without its values and their hash, and checks that it has the network's input and a score
   for each of its classes. TR_EINVAL or TR_EMISMATCH for one that does not; errors of reading. Release with
   tr_teacher_release(), also after a failure. */
tr_status tr_teacher_describe(const struct tr_job *job, struct tr_teacher *out);
/* The same with its values. TR_EMISMATCH also for another teacher than that of the run. */
tr_status tr_teacher_open(const struct tr_job *job, struct tr_teacher *out);
void tr_teacher_release(struct tr_teacher *teacher);

/* Whether the job has a teacher. */
static inline bool tr_job_is_taught(const struct tr_job *job)
{
    return job->distill.teacher != NULL;
}
/* Sets settings->teacher in the tree of a job that is about to be read. TR_ENOMEM. */
tr_status tr_job_choose_teacher(struct tr_job *job, const struct tr_job_settings *settings);
/* Reads the section `distill`, if there is one, which also has options of the loss. */
tr_status tr_job_read_distill(struct tr_job *job);
/* Notes the teacher in the loss of the network, which must be built. TR_EINVAL for a loss that cannot
   distil. */
tr_status tr_job_settle_distill(struct tr_job *job);
/* For a job from a model file: opens the teacher, and notes path and hash in the text. Errors as above. */
tr_status tr_job_note_teacher(struct tr_job *job);

#endif
