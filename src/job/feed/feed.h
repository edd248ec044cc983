/* The feed: brings the rows of a host batch to a pass, as the network wants its input.
 *
 * Images are stored as bytes, on the device as well; they are gathered, cropped and converted there. What a
 * device can keep of a source it keeps (job/feed/resident.h), and of a step is sent the numbers of its
 * examples and where they begin; else all that is in them. Nothing here waits for the device, but for what it
 * was given two runs before.
 */
#ifndef TR_JOB_FEED_H
#define TR_JOB_FEED_H

#include "data/order/batch.h"
#include "nn/pass/pass.h"
#include "job/job.h"

typedef struct tr_feed tr_feed;

struct tr_feed_options {
    int64_t rows;          /* of batches, at most */
    bool augment;          /* images change at random: training */
    bool keep;             /* examples come again, so that it pays to keep them on the device */
    bool features, labels; /* that passes take: they begin, or end, with the network */
};

/* For batches of `source`. All borrowed for the life of the feed, but the options. Returned, destroy with
   tr_feed_destroy(). */
tr_status tr_feed_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                         const struct tr_feed_options *options, tr_feed **out);
void tr_feed_destroy(tr_feed **feed);
/* Bytes of device memory. */
size_t tr_feed_memory(const tr_feed *feed);
/* Whether all that passes take is in the device's memory for good, so that nothing of a batch is borrowed. */
bool tr_feed_is_resident(const tr_feed *feed);

/* Brings rows [begin, end) of the batch to the pass, what of it the pass takes (nn/pass/pass.h), labels
   included if the source has them; `scalars` (device memory) and `seed` decide augmentation. The batch is
   borrowed until the device has been waited for.
 */
tr_status tr_feed_rows(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin, int64_t end,
                       uint64_t seed, const struct tr_step_scalars *scalars);

#endif
