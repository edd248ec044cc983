/* The augmenter: images of a batch, their labels and their targets, changed as training wants it.
 *
 * What is random is drawn here (job/feed/draw.h) and sent to the device in a table of a line for each row;
 * the device does the rest. Images that are mixed with others come in twos: first those of all rows, then
 * those that they are mixed with, which the loader has read, too (data/order/batch.h).
 */
#ifndef TR_JOB_AUGMENT_H
#define TR_JOB_AUGMENT_H

#include "base/numbers/rng.h"
#include "data/order/batch.h"
#include "job/job.h"

typedef struct tr_augmenter tr_augmenter;

/* Which rows are meant: of the batch, from `begin` on. */
struct tr_augmented {
    const struct tr_batch *batch;
    int64_t begin, rows;
    tr_rng_key key; /* of what is drawn: TR_RNG_AUGMENT */
};

/* For up to so many rows. All is borrowed until it is destroyed. Returned, destroy with
   tr_augmenter_destroy(). TR_ENOMEM. */
tr_status tr_augmenter_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              int64_t rows, tr_augmenter **out);
/* Accepts NULL, nulls the handle. */
void tr_augmenter_destroy(tr_augmenter **augmenter);
/* Bytes of device memory. */
size_t tr_augmenter_memory(const tr_augmenter *augmenter);

/* Enqueues the images. `plain` has sizes, source, numbers of images (twice the rows where they are mixed),
   output, and what of shifts and mirrors is random. */
tr_status tr_augmenter_images(tr_augmenter *augmenter, const struct tr_augmented *part,
                              const struct tr_op_load_images *plain);
/* The same of the labels of pixels. */
tr_status tr_augmenter_labels(tr_augmenter *augmenter, const struct tr_augmented *part,
                              const struct tr_op_load_images *plain, const struct tr_op_load_labels *labels);
/* The mixed labels, of classes as rows of probabilities, to `to` [rows][classes or values]. */
tr_status tr_augmenter_targets(tr_augmenter *augmenter, const struct tr_augmented *part, float *to);

#endif
