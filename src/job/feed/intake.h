/* How examples enter a job's network: from what data sets have to what the first layers take. */
#ifndef TR_JOB_INTAKE_H
#define TR_JOB_INTAKE_H

#include "job/job.h"

/* One source of an example: an image, or numbers. */
struct tr_intake_part {
    const char *name;       /* of joined data, borrowed from the job; else "" */
    struct tr_shape stored; /* as it is given: [height, width, channels], or [columns] */
    /* Of an image: the middle part of it and nothing drawn at random; all is set but the pointers, the rows
       and the numbers of examples. */
    struct tr_op_load_images images;
    struct tr_scaling scaling; /* of numbers; empty where they stay as they are */
    float *fill; /* [columns] of numbers that are missing, NaN for names; NULL: nothing is filled in */
};

/* The sources in the order in which the network takes them, images first; none where examples are texts. */
struct tr_intake {
    int32_t count;
    struct tr_intake_part part[TR_SOURCE_PARTS];
};

/* How examples of the job enter. Returned, free with tr_intake_release(), also after a failure. Errors as
   tr_job_scaling(). */
tr_status tr_job_intake(const struct tr_job *job, struct tr_intake *out);
/* Accepts an empty one; empties it. */
void tr_intake_release(struct tr_intake *intake);

/* How images stored in one size enter where another is wanted, both [height, width, channels]: sets what
   struct tr_intake_part says of `images`. */
void tr_intake_of_image(const struct tr_input_options *input, const int64_t *stored, const int64_t *wanted,
                        struct tr_op_load_images *op);

#endif
