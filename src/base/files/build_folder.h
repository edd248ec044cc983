/* Programs that run in the folder that they were built in, where an installation's directories are not. Their
 * files hold no path of it, so that what is installed knows nothing of where it was built. */
#ifndef TR_BASE_BUILD_FOLDER_H
#define TR_BASE_BUILD_FOLDER_H

#include <limits.h>
#include <stdbool.h>

/* Whether `program`, the path of a program or library, absolute and without links, lies in a folder of
   CMake's build folder, which `folder` becomes; there are `modules` and `sources`, a link. Any thread. */
bool tr_build_folder(const char *program, char folder[PATH_MAX]);

#endif
