#include "export/origin.h"

#include "base/alloc.h"

#include <inttypes.h>

char *tr_export_origin(const struct tr_export *what)
{
    return tr_format("%s, trained for %" PRId64
                     " steps, parameters %s%s; written by trireme " TRIREME_VERSION,
                     what->job->file.name, what->facts->step, what->facts->parameter_hash,
                     what->averages ? " (their moving averages)" : "");
}
