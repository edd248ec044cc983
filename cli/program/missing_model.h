/* The message for a path that is not a model file where one is expected. */
#ifndef CLI_MISSING_MODEL_H
#define CLI_MISSING_MODEL_H

#include "trireme/status.h"

#include <stdbool.h>

/* Whether the directory `path` is one of a run or a checkpoint. */
bool cli_is_run(const char *path);
/* Whether `path`, which does not exist, exists with a suffix of model files. */
bool cli_model_lacks_suffix(const char *path);
/* TR_EINVAL for a directory, TR_ENOTFOUND for a missing file, each with the likely intention: a run to
   continue, a model that ships, a file with the other suffix or with a similar name in the same directory.
   TR_OK for other paths. TR_ENOMEM. */
tr_status cli_model_check(const char *path);

#endif
