/* The model files and data sets that ship with the program, found by name from any directory.
 *
 * They lie in the source tree for a program in its build folder, otherwise where an installation puts
 * them, relative to the folder of the program, so that it may be moved. Files of the current directory
 * come first.
 */
#ifndef CLI_SHIPPED_H
#define CLI_SHIPPED_H

#include "trireme/status.h"

/* The directory that has `models` and `data`. Returned, free with tr_free(). TR_ENOTFOUND, TR_ENOMEM. */
tr_status cli_shipped_directory(char **out);

/* The names of the model files without ".yaml", ascending. *directory (returned, free with tr_free()) is
   where they lie. Errors as above; TR_EIO. Release `names` with tr_file_names_free(). */
struct tr_file_names;
tr_status cli_shipped_models(char **directory, struct tr_file_names *names);

/* If *path names no file but a model that ships, it becomes the path of its file (the old text is freed);
   other paths are not changed. TR_ENOTFOUND, with the nearest name, if it is neither and looks like a
   name; TR_ENOMEM. */
tr_status cli_shipped_find_model(char **path);

/* The directory to read the data set `set` from. If `directory` is "data", which is the default, and lacks
   the set, the one that ships; else `directory`. Returned, free with tr_free(). TR_ENOMEM. */
#define CLI_DATA_DIRECTORY "data"
tr_status cli_shipped_find_data(const char *directory, const char *set, char **out);

#endif
