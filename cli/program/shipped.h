/* The model files and data sets that ship with the program, found by name from any directory.
 *
 * They lie in the source tree for a program in its build folder, else where an
 * installation puts them, seen from the folder of the program, so that it may be moved. What is in the
 * current directory comes first.
 */
#ifndef CLI_SHIPPED_H
#define CLI_SHIPPED_H

#include "trireme/status.h"

/* The directory that has `models` and `data`. Returned, free with tr_free(). TR_ENOTFOUND, TR_ENOMEM. */
tr_status cli_shipped_directory(char **out);

/* The names of the model files, ascending: what is before ".yaml". *directory (returned, free with tr_free())
   is where they lie. Errors as above; TR_EIO. `names` is to be released with tr_file_names_free(). */
struct tr_file_names;
tr_status cli_shipped_models(char **directory, struct tr_file_names *names);

/* Where *path names no file and is the name of a model that ships, it becomes the path of its file (the old
   text is freed); other paths stay as they are. TR_ENOTFOUND for what is neither, if it looks like a name,
   with the nearest one; TR_ENOMEM. */
tr_status cli_shipped_find_model(char **path);

/* The directory to read the data set `set` from: the one that ships where `directory` is "data", which is the
   default, and does not have the set; else `directory`. Returned, free with tr_free(). TR_ENOMEM. */
#define CLI_DATA_DIRECTORY "data"
tr_status cli_shipped_find_data(const char *directory, const char *set, char **out);

#endif
