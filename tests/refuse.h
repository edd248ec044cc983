/* Allocations that fail: the loop of a test that lets every single one fail in turn.
 *
 *     for (int64_t at = 0, done = 0; !done; at++) {
 *         int64_t live = tr_alloc_live();
 *         refuse_begin(at);
 *         tr_status status = ... what is tested ...
 *         done = refuse_end();
 *         assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
 *         ... release ...
 *         assert_int_equal(tr_alloc_live(), live);
 *     }
 */
#ifndef TESTS_REFUSE_H
#define TESTS_REFUSE_H

#include "base/alloc.h"

#include <stdbool.h>

static int64_t refuse_left;

static int refuse_count(size_t size, void *user)
{
    (void)size, (void)user;
    return refuse_left-- == 0;
}

/* Lets allocation `at` (from 0) fail. */
static inline void refuse_begin(int64_t at)
{
    refuse_left = at;
    tr_alloc_set_hook(refuse_count, NULL);
}

/* Ends that; whether nothing was refused, since there were fewer allocations. */
static inline bool refuse_end(void)
{
    tr_alloc_set_hook(NULL, NULL);
    return refuse_left >= 0;
}

#endif
