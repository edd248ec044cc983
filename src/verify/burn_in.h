/* The small job with a known hash, for burn-ins. */
#ifndef TR_VERIFY_BURN_IN_H
#define TR_VERIFY_BURN_IN_H

#include "base/numbers/hash.h"
#include "trireme/data.h"

/* Its hash under this version of the arithmetic. */
extern const char burn_in_hash[TR_SHA256_TEXT];

/* Its data, in separate memory. Returned, close with tr_source_close(). TR_ENOMEM. */
tr_status burn_in_data(tr_source **out);
/* Trains it once, on one thread of the device; `hash` becomes the result. Any thread. */
tr_status burn_in_run(const tr_source *data, const char *device, const char *program_cache,
                      char hash[TR_SHA256_TEXT]);

#endif
