/* Where a run keeps its checkpoints, and whether the place is free. */
#ifndef CLI_RUN_DIRECTORY_H
#define CLI_RUN_DIRECTORY_H

#include "base/options/option.h"

/* The directory of a run without a named one: that of the checkpoints which `resume` (or NULL) continues
   from, else runs/NAME after the job in the model file, changed by `set` as for training. Borrowed for the
   call. Returned, free with tr_free(). Errors are those of reading the model file; TR_EINVAL for one
   without a name. */
tr_status cli_run_directory(const char *model, const struct tr_string_list *set, const char *resume,
                            char **out);

/* The value of --out for a new directory in runs/. */
#define CLI_OUT_AUTO "auto"
/* Makes a new directory for a run, runs/NAME-N after the job in the model file or, without one, in the
   checkpoint `resume`; N is the number after the highest in use, from 1. Otherwise as above. TR_EIO. */
tr_status cli_run_directory_new(const char *model, const struct tr_string_list *set, const char *resume,
                                char **out);
/* Removes a directory that was made for a run which cannot begin, if it is empty. */
void cli_run_directory_drop(const char *directory);

/* TR_EINVAL if `directory` has checkpoints; the message shows all ways to continue. */
tr_status cli_run_check_unused(const char *directory);
/* TR_EINVAL if nothing can be written to `directory`, whether it exists or will be made, with the cause.
 * Removes its test file.
 */
tr_status cli_run_check_writable(const char *directory);

#endif
