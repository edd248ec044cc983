/* Export to an .npz file: the tensors in either layout, as numpy.load() gives them. */
#include "base/fail.h"
#include "export/formats.h"
#include "export/layout.h"
#include "io/npy.h"

tr_status tr_export_npz(const struct tr_export *what, const char *path)
{
    struct tr_layout_packed packed;
    TR_TRY(tr_layout_pack(what->job->model, what->layout, what->parameters, what->facts->step, &packed));
    tr_status status = tr_npz_replace(NULL, path, packed.tensor, packed.list.count);
    tr_layout_packed_free(&packed);
    return status;
}
