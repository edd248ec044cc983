/* How examples enter a job's network: from the form of data sets to the input of the first layers. */
#ifndef TR_JOB_INTAKE_H
#define TR_JOB_INTAKE_H

#include "job/job.h"

/* One source of an example: an image, or numbers. */
struct tr_intake_part {
    const char *name;       /* of joined data, borrowed from the job; else "" */
    struct tr_shape stored; /* as given: [height, width, channels], or [columns] */
    bool numbers;           /* an image of numbers, as a row, that is cropped or scaled: `images` says how */
    /* For an image: its middle part and nothing random; all members are set except the pointers, the rows
       and the numbers of examples. */
    struct tr_op_load_images images;
    struct tr_scaling scaling; /* of numbers; empty where they do not change */
    float *fill;               /* [columns] replacements of missing numbers, NaN for names; NULL: none */
};

/* The sources in the network's order, images first; none where examples are texts. */
struct tr_intake {
    int32_t count;
    struct tr_intake_part part[TR_SOURCE_PARTS];
};

/* How examples of the job enter the network. Returned, free with tr_intake_release(), also after a
   failure. Errors as tr_job_scaling(). */
tr_status tr_job_intake(const struct tr_job *job, struct tr_intake *out);
/* Accepts an empty one; empties it. */
void tr_intake_release(struct tr_intake *intake);

/* How images of one size enter where another size is needed, both [height, width, channels]: sets `images`
   of struct tr_intake_part. */
void tr_intake_of_image(const struct tr_job *job, const int64_t *stored, const int64_t *wanted,
                        struct tr_op_load_images *op);
/* The same for the image that an example is, of bytes or of numbers. */
void tr_intake_of_example(const struct tr_job *job, struct tr_op_load_images *op);

#endif
