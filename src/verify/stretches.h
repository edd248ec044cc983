/* What is run again: segments, which lie between neighbouring boundaries, joined to stretches, each of which
 * begins with a state that is at hand. */
#ifndef TR_VERIFY_STRETCHES_H
#define TR_VERIFY_STRETCHES_H

#include "trireme/receipt.h"
#include "verify/claim.h"

/* From one boundary to another, by their numbers in the receipt. It may begin before the first segment that
   is wanted, where no later state is at hand. */
struct stretch {
    int64_t first, end;
};

struct stretches {
    struct stretch *stretch; /* [count] ascending */
    int64_t count;
    int64_t checked; /* segments in them */
};

/* Draws segments, or takes all, and joins them; of these, the part of settings->share. Without a segment, the
   first state is a stretch by itself. With settings->expect, the last segment is among them. Release with
   stretches_release(). TR_EINVAL, TR_ENOMEM. */
tr_status stretches_plan(const struct claim *claim, const struct tr_verify_settings *settings,
                         struct stretches *out);
void stretches_release(struct stretches *stretches);

#endif
