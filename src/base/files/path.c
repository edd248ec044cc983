#include "base/files/path.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

char *tr_path_join(const char *directory, const char *name)
{
    size_t length = strlen(directory);
    bool slash = length > 0 && directory[length - 1] != '/';
    return tr_format("%s%s%s", directory, slash ? "/" : "", name);
}

const char *tr_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *tr_path_parent(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    if (length == 0) return tr_strdup(".");
    while (length > 1 && path[length - 1] == '/') length--;
    return tr_format("%.*s", (int)length, path);
}

char *tr_path_absolute(const char *path)
{
    char *found = realpath(path, NULL);
    char *copy = tr_strdup(found ? found : path);
    free(found); /* the C library's own memory */
    return copy;
}
