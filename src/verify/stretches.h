/* The parts to repeat: segments, which lie between neighbouring boundaries, joined into stretches, each of
 * which begins with an available state.
 */
#ifndef TR_VERIFY_STRETCHES_H
#define TR_VERIFY_STRETCHES_H

#include "trireme/receipt.h"
#include "verify/claim.h"

/* From one boundary to another, by their numbers in the receipt. It may begin before its first wanted
   segment, where no later state is available. */
struct stretch {
    int64_t first, end;
};

struct stretches {
    struct stretch *stretch; /* [count] ascending */
    int64_t count;
    int64_t checked; /* segments in them */
};

/* Draws segments, or takes all, and joins them; of these, the part of settings->share. Without segments,
   the first state alone is a stretch. With settings->expect, the last segment is among them. Release with
   stretches_release(). TR_EINVAL, TR_ENOMEM. */
tr_status stretches_plan(const struct claim *claim, const struct tr_verify_settings *settings,
                         struct stretches *out);
void stretches_release(struct stretches *stretches);

#endif
