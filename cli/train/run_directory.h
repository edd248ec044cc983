/* Where a run keeps its checkpoints, and what is there already. */
#ifndef CLI_RUN_DIRECTORY_H
#define CLI_RUN_DIRECTORY_H

#include "base/options/option.h"

/* The directory of a run for which none was named: that of the checkpoints which `resume` (NULL or not) goes
   on from, else runs/NAME after the job in the model file, changed by `set` as for training. Borrowed for the
   call. Returned, free with tr_free(). Errors are those of reading the model file; TR_EINVAL for one without
   a name. */
tr_status cli_run_directory(const char *model, const struct tr_string_list *set, const char *resume,
                            char **out);

/* The value of --out that means: a new directory in runs/. */
#define CLI_OUT_AUTO "auto"
/* Makes a new directory for a run, runs/NAME-N after the job in the model file or, without one, in what
   `resume` goes on from; N is the number after the highest there is, from 1. Otherwise as above. TR_EIO. */
tr_status cli_run_directory_new(const char *model, const struct tr_string_list *set, const char *resume,
                                char **out);
/* Removes a directory that was made for a run which cannot begin, unless something is in it. */
void cli_run_directory_drop(const char *directory);

/* TR_EINVAL where `directory` has checkpoints, with all ways to go on in the message. */
tr_status cli_run_check_unused(const char *directory);
/* TR_EINVAL where nothing can be written to `directory`, there or still to be made, with the cause. Leaves
 * nothing after. */
tr_status cli_run_check_writable(const char *directory);

#endif
