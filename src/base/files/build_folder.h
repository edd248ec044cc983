/* Programs that run in the folder that they were built in, without the directories of an installation.
 * They do not contain its path, so that installed files do not depend on where they were built.
 */
#ifndef TR_BASE_BUILD_FOLDER_H
#define TR_BASE_BUILD_FOLDER_H

#include <limits.h>
#include <stdbool.h>

/* Whether `program` (the absolute path, without links, of a program or library) lies in a CMake build
   folder; its path becomes `folder`, which contains `modules` and `sources`, a link. Any thread. */
bool tr_build_folder(const char *program, char folder[PATH_MAX]);

#endif
