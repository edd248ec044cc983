/* The augmenter: changes the images of a batch, their labels and their targets for training.
 *
 * Random numbers are drawn here (job/feed/draw.h) and sent to the device in a table with a line for each
 * row; the device does the rest. With mixing there are two images for each row: first those of all rows,
 * then their partners, which the loader has read, too (data/order/batch.h).
 */
#ifndef TR_JOB_AUGMENT_H
#define TR_JOB_AUGMENT_H

#include "base/numbers/rng.h"
#include "data/order/batch.h"
#include "job/job.h"

typedef struct tr_augmenter tr_augmenter;

/* The rows in question: of the batch, from `begin` on. */
struct tr_augmented {
    const struct tr_batch *batch;
    int64_t begin, rows;
    tr_rng_key key;       /* key of the draws: TR_RNG_AUGMENT */
    const float *numbers; /* the images, where they are of numbers, in the place of `source` below */
};

/* Whether examples need one: in `training` those that change beyond shifts and mirrors, and images of numbers
   that change at all. */
bool tr_augmenter_is_needed(const struct tr_job *job, bool training);
/* For at most so many rows; outside of `training` nothing is random. All is borrowed until it is destroyed.
   Returned, destroy with tr_augmenter_destroy(). TR_ENOMEM. */
tr_status tr_augmenter_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              int64_t rows, bool training, tr_augmenter **out);
/* Accepts NULL, nulls the handle. */
void tr_augmenter_destroy(tr_augmenter **augmenter);
/* Bytes of device memory that one for so many rows takes in training; 0 where the job wants none. */
int64_t tr_augmenter_expect(const struct tr_job *job, int64_t rows);
/* Bytes of device memory. */
size_t tr_augmenter_memory(const tr_augmenter *augmenter);

/* Enqueues the images. `plain` has sizes, source, numbers of images (twice the rows where they are mixed),
   output, and the random shifts and mirrors. */
tr_status tr_augmenter_images(tr_augmenter *augmenter, const struct tr_augmented *part,
                              const struct tr_op_load_images *plain);
/* The same for labels of pixels. */
tr_status tr_augmenter_labels(tr_augmenter *augmenter, const struct tr_augmented *part,
                              const struct tr_op_load_images *plain, const struct tr_op_load_labels *labels);
/* The mixed labels, with classes as rows of probabilities, to `to` [rows][classes or values]. */
tr_status tr_augmenter_targets(tr_augmenter *augmenter, const struct tr_augmented *part, float *to);

#endif
