/* Structures of the public interface that begin with their size, so that members can be appended: programs
 * built with an older, shorter structure work unchanged.
 */
#ifndef TR_BASE_SIZED_H
#define TR_BASE_SIZED_H

#include "trireme/status.h"

#include <stddef.h>

/* Settings from a caller: copies `defaults` [bytes] to `out`, then the caller's structure over them.
   TR_EINVAL where its size is invalid, or above `bytes`, as of a newer library; `init` is the initializer
   to recommend ("TR_TRAIN_SETTINGS_INIT"). `bytes` is the size of the present structure. Any thread. */
tr_status tr_sized_take(const void *given, const void *defaults, size_t bytes, const char *init, void *out);

/* Whether a caller's `out` has a size; else TR_EINVAL. Check it before work whose result goes there. */
tr_status tr_sized_check(const void *out, const char *init);
/* Facts for a caller: copies as much of `facts` [bytes] as `out` has room for, and sets its size to the
   bytes copied. Later bytes do not change. TR_EINVAL as above. */
tr_status tr_sized_give(const void *facts, size_t bytes, const char *init, void *out);

#endif
