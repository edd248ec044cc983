/* What a file calls the tensors of a network: "THEIRS=OURS".
 *
 * OURS is a layer, all of whose tensors have THEIRS in place of its name, or a tensor as the layout names
 * it
 * ("attention1.in_proj_weight"), or nothing: the tensor of the file is passed over. A `*` on both sides
 * stands for a number, the same on both: "h.*.ln_1=first_norm*". THEIRS may end with "^T": matrices lie in
 * the file with rows and columns exchanged.
 */
#ifndef TR_EXPORT_RENAME_H
#define TR_EXPORT_RENAME_H

#include "trireme/status.h"

#include <stdbool.h>

/* Whether each of them says something about one of `count` tensors, `name` of which the network has, or says
   that a tensor of the file is passed over. TR_EINVAL. */
tr_status tr_rename_check(const char *const *rename, int renames, const char *const *name, int count);
/* What the file calls the tensor `name`, by the first of them that says so; `name` itself if none does.
   Returned, free with tr_free(); NULL when memory fails. `transposed`: whether "^T" stood there. */
char *tr_rename_find(const char *const *rename, int renames, const char *name, bool *transposed);
/* Whether one of them says that the file's tensor `name` is passed over. */
bool tr_rename_passes(const char *const *rename, int renames, const char *name);

#endif
