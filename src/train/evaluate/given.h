/* Forward passes over examples that the caller gives. */
#ifndef TR_TRAIN_GIVEN_H
#define TR_TRAIN_GIVEN_H

#include "job/feed/feed.h"
#include "job/job.h"

typedef struct tr_given tr_given;

/* All borrowed for the life of the object; not for joined data. Returned, destroy with tr_given_destroy().
 */
tr_status tr_given_create(tr_device *device, const struct tr_job *job, tr_given **out);
void tr_given_destroy(tr_given **given);

/* Examples in the form that the job's features have; the others are NULL. Borrowed for the call. */
struct tr_given_examples {
    int64_t count;         /* >= 1 */
    const uint8_t *images; /* [count] as stored */
    const float *floats;   /* [count][floats], scaled as those of the training data */
    const int32_t *tokens; /* one example after the other */
    const int32_t *offset; /* [count + 1] where each begins, from 0; none is empty */
};

/* The network's output, on the host: a row of floats for each example, or for each token where the output is
   of tokens. Room for the largest call is kept. */
tr_status tr_given_run(tr_given *given, const float *parameters, const struct tr_given_examples *examples,
                       float *output);

#endif
