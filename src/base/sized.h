/* Structures of the public interface that begin with their size, so that members can be appended to them: a
 * program that was built with an older, shorter one goes on as it was.
 */
#ifndef TR_BASE_SIZED_H
#define TR_BASE_SIZED_H

#include "trireme/status.h"

#include <stddef.h>

/* Settings from a caller: `out` [bytes] becomes `defaults` with what the caller's structure has in their
   place. TR_EINVAL where its size is none, or beyond `bytes`: of a newer library; `init` names how to begin
   ("TR_TRAIN_SETTINGS_INIT"). `bytes` is that of today's structure. Any thread. */
tr_status tr_sized_take(const void *given, const void *defaults, size_t bytes, const char *init, void *out);

/* Whether `out` of a caller has a size; else TR_EINVAL. To be asked before work whose outcome it is to take.
 */
tr_status tr_sized_check(const void *out, const char *init);
/* Facts to a caller: copies as much of `facts` [bytes] as `out` has room for, and sets its size to what was
   filled. Bytes beyond are untouched. TR_EINVAL as above. */
tr_status tr_sized_give(const void *facts, size_t bytes, const char *init, void *out);

#endif
