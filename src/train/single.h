/* Forward passes over one example that comes from nowhere but the caller. */
#ifndef TR_TRAIN_SINGLE_H
#define TR_TRAIN_SINGLE_H

#include "job/feed.h"
#include "job/job.h"

typedef struct tr_single tr_single;

/* All borrowed for the life of the single. Returned, destroy with tr_single_destroy(). */
tr_status tr_single_create(tr_device *device, const struct tr_job *job, tr_single **out);
void tr_single_destroy(tr_single **single);

/* One example in the form that the job's features have; the others are NULL. Borrowed for the call. */
struct tr_example {
    const uint8_t *image;
    const float *floats;
    const int32_t *tokens;
    int64_t token_count; /* >= 1 */
};

/* The network's output for an example, [output] floats on the host. */
tr_status tr_single_run(tr_single *single, const float *parameters, const struct tr_example *example,
                        float *output);

#endif
