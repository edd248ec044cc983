/* Which tensor of a safetensors file belongs to which parameter of a network, by names, which settings can
 * change, and shapes. Nothing is read first.
 */
#ifndef TR_EXPORT_MATCHING_H
#define TR_EXPORT_MATCHING_H

#include "base/text/text.h"
#include "export/layout.h"
#include "io/safetensors.h"
#include "trireme/export.h"

/* A file that is being matched with a network; the caller sets the first four members. */
struct tr_matching {
    const struct tr_import_settings *settings;
    const char *name; /* of the file, for messages */
    const struct tr_model *model;
    tr_safetensors *file;
    struct tr_layout_list list;
    const struct tr_safetensors_entry **entry; /* [list.count] of the file, NULL where one may be missing */
    bool *transposed;                          /* [list.count] rows and columns are exchanged there */
    struct tr_text others;                     /* partial: tensors that keep their initial values */
    int other_count;
};

/* Finds all tensors of the list. TR_EMISMATCH names tensors that are missing, too many or of another
   shape. Where the settings allow a partial import, at least one must match, and the log names the rest.
   TR_EUNSUPPORTED, TR_EINVAL for renames, TR_ENOMEM. */
tr_status tr_matching_find(struct tr_matching *matching);
/* Also closes the file. */
void tr_matching_release(struct tr_matching *matching);

#endif
