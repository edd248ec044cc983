#include "data/describe.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *ending, *format, *key;
} endings[] = {
    {".csv", "csv", "path"},     {".tsv", "csv", "path"},           {".txt", "text", "path"},
    {".npy", "npy", "features"}, {".tfrecord", "tfrecord", "path"}, {".tfrecords", "tfrecord", "path"},
    {"-ubyte", "idx", "images"}, {".idx", "idx", "images"},
};

static bool ends_with(const char *name, size_t length, const char *ending)
{
    size_t tail = strlen(ending);
    return length > tail && strncasecmp(name + length - tail, ending, tail) == 0;
}

static char *describe(const char *format, const char *key, const char *path)
{
    /* These characters need no quotes in a YAML mapping, nor in the shell. */
    bool plain =
        path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-")] == 0;
    const char *quote = plain && *path != '-' ? "" : "\"";
    return tr_format("{%s: {%s: %s%s%s}}", format, key, quote, path, quote);
}

char *tr_describe_file(const char *path)
{
    size_t length = strlen(path);
    if (tr_file_is_directory(path)) return describe("folder", "path", path);
    if (ends_with(path, length, ".gz")) length -= 3;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(path, length, endings[i].ending))
            return describe(endings[i].format, endings[i].key, path);
    return NULL;
}
