/* The feed: brings the rows of a host batch to a pass, in the form of the network's input.
 *
 * Images are stored as bytes or numbers, also on the device, where they are gathered, cropped and
 * converted. If the device can keep a source's data (job/feed/resident.h), a step sends only the numbers of
 * its examples and their offsets; otherwise all of their data. Nothing here waits for the device, except for
 * the data of two runs before.
 */
#ifndef TR_JOB_FEED_H
#define TR_JOB_FEED_H

#include "data/order/batch.h"
#include "nn/pass/pass.h"
#include "job/job.h"

typedef struct tr_feed tr_feed;

struct tr_feed_options {
    int64_t rows;          /* most rows of a batch */
    bool augment;          /* images change at random, for training */
    bool keep;             /* examples are used repeatedly, so that keeping them on the device pays */
    bool features, labels; /* parts that passes take: features if they begin, labels if they end, with the
                              network */
};

/* For batches of `source`. All borrowed for the life of the feed, but the options. Returned, destroy with
   tr_feed_destroy(). */
tr_status tr_feed_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                         const struct tr_feed_options *options, tr_feed **out);
void tr_feed_destroy(tr_feed **feed);
/* Bytes of device memory. */
size_t tr_feed_memory(const tr_feed *feed);
/* Whether all data that passes take are resident on the device, so that nothing of a batch is borrowed. */
bool tr_feed_is_resident(const tr_feed *feed);

/* Brings rows [begin, end) of the batch to the pass: the parts that it takes (nn/pass/pass.h), with labels
   if the source has them. `scalars` (device memory) and `seed` determine augmentation. The batch is
   borrowed until the device has been waited for. */
tr_status tr_feed_rows(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin, int64_t end,
                       uint64_t seed, const struct tr_step_scalars *scalars);

#endif
