/* The names of a network's tensors in a file: "THEIRS=OURS".
 *
 * OURS is a layer, all of whose tensors have THEIRS in place of its name, or a tensor as the layout names
 * it ("attention1.in_proj_weight"), or nothing: the tensor of the file is skipped. A `*` on both sides
 * stands for a number, the same on both: "h.*.ln_1=first_norm*". THEIRS may end with "^T": matrices lie in
 * the file with rows and columns exchanged.
 */
#ifndef TR_EXPORT_RENAME_H
#define TR_EXPORT_RENAME_H

#include "trireme/status.h"

#include <stdbool.h>

/* Whether each rename concerns one of `count` tensors, `name` of the network, or skips a tensor of the
   file. TR_EINVAL. */
tr_status tr_rename_check(const char *const *rename, int renames, const char *const *name, int count);
/* The file's name for the tensor `name`, by the first rename that concerns it; `name` itself if none does.
   Returned, free with tr_free(); NULL when memory fails. `transposed`: whether the rename had "^T". */
char *tr_rename_find(const char *const *rename, int renames, const char *name, bool *transposed);
/* Whether a rename skips the file's tensor `name`. */
bool tr_rename_passes(const char *const *rename, int renames, const char *name);

#endif
