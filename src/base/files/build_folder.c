#include "base/files/build_folder.h"

#include "base/files/file.h"

#include <stdio.h>
#include <string.h>

/* Takes the last name from a path. */
static bool rise(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = '\0';
    return true;
}

bool tr_build_folder(const char *program, char folder[PATH_MAX])
{
    char cache[PATH_MAX + 16];
    if ((size_t)snprintf(folder, PATH_MAX, "%s", program) >= PATH_MAX || !rise(folder) || !rise(folder))
        return false;
    snprintf(cache, sizeof cache, "%s/CMakeCache.txt", folder);
    return tr_file_exists(cache);
}
